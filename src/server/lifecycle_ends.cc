// Ends. An end is stored with the last output in one transaction, and only then does the runtime learn that
// it need not be told again: after a kill -9 at any instruction the next server hears of it, or finds it
// stored.

#include "base/last_words.h"
#include "base/log.h"
#include "server/lifecycle.h"
#include "server/runtime_calls.h"

namespace osb::server {

using store::State;

namespace {

constexpr io::Duration kStoreAgainFirst = std::chrono::milliseconds(100);
constexpr io::Duration kStoreAgainMost = std::chrono::seconds(30);
constexpr auto kDrainLimit = std::chrono::seconds(2);

}  // namespace

Task<> Lifecycle::watch(std::string id, std::string handle) {
  runtime::End end = co_await runtime_.wait(handle);
  struct Ending {
    Lifecycle& self;
    ~Ending() {
      if (--self.ending_ == 0) self.ends_stored_.set();
    }
  };
  {
    ++ending_;
    Ending ending{*this};
    auto stored = co_await store_end_locked(id, std::move(end));
    // It counts already, for every reader; whoever acknowledges it has to know that it is on the disk.
    for (io::Duration again = kStoreAgainFirst; !stored; again = std::min(again * 2, kStoreAgainMost)) {
      keep_trying(id, stored);
      co_await io::sleep_for(again);
      stored = store_.settle(id);
    }
  }
  // A removal at the same time would do the same again.
  auto guard = co_await locks_.lock(id);
  auto settled = co_await runtime_.settle(handle);
  if (!settled) {
    log::warn("an ended sandbox is not settled; the next start does it",
              {{"id", id}, {"error", settled.error().message}});
  }
}

Task<Result<void>> Lifecycle::store_end_locked(std::string id, runtime::End end) {
  auto guard = co_await locks_.lock(id);
  co_return store_end(id, end);
}

// What has been heard is stored before this process goes, if that is possible at once.
Task<> Lifecycle::drain() {
  co_await io::yield();
  if (ending_ == 0) co_return;
  ends_stored_.reset();
  co_await io::race(ends_stored_.wait(), io::sleep_for(kDrainLimit));
}

// Nothing of it runs any more.
void Lifecycle::forget(const std::string& id) {
  stops_.erase(id);
  on_end_(id);
}

Result<void> Lifecycle::store_end(const std::string& id, const runtime::End& end) {
  auto row = TRY(store_.sandboxes().find(id));
  // Removed, its removal ended it, or its end is known.
  if (!row || row->status.state == State::stopping || row->status.state == State::terminated ||
      row->status.state == State::failed) {
    return {};
  }
  forget(id);
  store::Status status = status_of(end, clock_.now());
  // Events outlive the sandbox, its output does not: clients delete one that never became healthy.
  std::string event = status.reason + ": " + status.message;
  std::string said = last_words(end.output, " | ");
  if (status.state == State::failed && !said.empty()) event += "; its last output: " + said;
  store::Change change{.status = status,
                       .event = store::SandboxEvent{status.changed, "Ended", std::move(event)}};
  if (!end.output.empty()) change.output = store::Output{end.output, end.output_truncated};
  log::info("sandbox ended", {{"id", id}, {"reason", status.reason}, {"message", status.message}});
  return store_.note(id, std::move(change));
}

}  // namespace osb::server
