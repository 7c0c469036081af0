// Ends. An end is stored with the last output in one transaction, and only then does the runtime learn that
// it need not be told again: after a kill -9 at any instruction the next server hears of it, or finds it
// stored.

#include "base/last_words.h"
#include "base/log.h"
#include "server/lifecycle.h"
#include "server/runtime_calls.h"

namespace osb::server {

using sandbox::Verb;

namespace {

constexpr io::Duration kStoreAgainFirst = std::chrono::milliseconds(100);
constexpr io::Duration kStoreAgainMost = std::chrono::seconds(30);
constexpr auto kDrainLimit = std::chrono::seconds(2);

}  // namespace

Task<> Lifecycle::watch(std::string id, std::string handle, runtime::Runtime& runtime) {
  auto end = co_await runtime.wait(handle);
  if (!end) co_return lose_sight(id, std::move(end.error()));
  struct Ending {
    Lifecycle& self;
    ~Ending() {
      if (--self.ending_ == 0) self.ends_stored_.set();
    }
  };
  {
    ++ending_;
    Ending ending{*this};
    auto stored = co_await store_end_locked(id, handle, std::move(*end));
    // It counts already, for every reader; whoever acknowledges it has to know that it is on the disk.
    for (io::Duration again = kStoreAgainFirst; !stored; again = std::min(again * 2, kStoreAgainMost)) {
      keep_trying(id, stored);
      co_await io::sleep_for(again);
      stored = co_await store_.settle(id);
    }
  }
  // A removal at the same time would do the same again.
  auto guard = co_await locks_.lock(id);
  auto settled = co_await runtime.settle(handle);
  if (!settled) {
    log::warn("an ended sandbox is not settled; the next start does it",
              {{"id", id}, {"error", settled.error().message}});
  }
}

Task<Result<void>> Lifecycle::store_end_locked(std::string id, std::string handle, runtime::End end) {
  auto guard = co_await locks_.lock(id);
  sandbox::SandboxPtr row = CO_TRY(co_await store_.find(Scope::everybody(), id));
  // Another one is in its place: it was rolled back.
  if (row && row->handle != handle) co_return Result<void>();
  co_return co_await store_end(std::move(id), std::move(end));
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
  stops_.forget(id);
  uses_.forget(id);
  on_end_(id);
}

Task<Result<void>> Lifecycle::store_end(std::string id, runtime::End end) {
  sandbox::Status status = status_of(end, clock_.now());
  Verb verb = status.state == sandbox::State::terminated ? Verb::exit : Verb::fail;
  sandbox::SandboxPtr row = CO_TRY(co_await store_.find(Scope::everybody(), id));
  // Removed, its removal ended it, or its end is known.
  if (!row || !allows(row->status.state, verb)) co_return Result<void>();
  forget(id);
  std::string reason(to_string(status.reason));
  // Events outlive the sandbox, its output does not: clients delete one that never became healthy.
  std::string event = reason + ": " + status.message;
  std::string said = last_words(end.output, " | ");
  if (status.state == sandbox::State::failed && !said.empty()) event += "; its last output: " + said;
  store::Change change{.status = status, .event = sandbox::Event{status.changed, "Ended", std::move(event)}};
  if (!end.output.empty()) change.output = sandbox::Output{std::move(end.output), end.output_truncated};
  log::info("sandbox ended",
            {{"id", id}, {"owner", row->owner}, {"reason", reason}, {"message", status.message}});
  co_return co_await store_.note(std::move(id), std::move(change));
}

}  // namespace osb::server
