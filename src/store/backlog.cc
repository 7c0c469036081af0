#include "store/backlog.h"

namespace osb::store {

Result<void> Backlog::note(std::string_view id, Change change) {
  Waiting& waiting = waiting_[std::string(id)];
  if (change.event) waiting.events.push_back(std::move(*change.event));
  if (change.output) waiting.output = std::move(change.output);
  if (change.removed) waiting.output.reset();
  sandboxes_->hold(id, {.status = change.status, .expires = change.expires, .removed = change.removed});
  return settle(id);
}

Result<void> Backlog::settle(std::string_view id) {
  auto found = waiting_.find(id);
  if (found == waiting_.end()) return {};
  TRY(write(found->first, found->second));
  sandboxes_->let_go(id);
  waiting_.erase(found);
  return {};
}

Result<void> Backlog::settle() {
  // A disk that refuses one refuses all, but a single row that nobody can write must not hold up the others.
  constexpr int kTries = 8;
  Result<void> result;
  int failed = 0;
  for (auto next = waiting_.begin(); next != waiting_.end() && failed < kTries;) {
    std::string id = next->first;
    ++next;
    if (auto settled = settle(id); !settled) {
      result = std::move(settled);
      ++failed;
    }
  }
  return result;
}

Result<void> Backlog::write(const std::string& id, const Waiting& waiting) {
  auto transaction = TRY(Transaction::begin(*db_));
  // Before the row may go, from which they have their owner.
  for (const Event& event : waiting.events) TRY(events_->add(id, event));
  if (waiting.output) TRY(outputs_->put(id, *waiting.output));
  if (TRY(sandboxes_->write_held(id))) TRY(outputs_->remove(id));
  return transaction.commit();
}

}  // namespace osb::store
