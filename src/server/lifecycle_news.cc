// What others than this server do to a sandbox, with an engine's own client: its row follows. A change that
// this server makes at the same time has the lock, and comes first; then it is asked what the sandbox does
// now, so that no piece of news can be too old.

#include "base/log.h"
#include "server/lifecycle.h"
#include "server/record.h"

namespace osb::server {

using sandbox::State;

namespace {

constexpr int64_t kLatest = 100;

}  // namespace

void Lifecycle::listen() {
  for (runtime::Runtime* runtime : runtimes_.all()) {
    runtime->on_news(
        [this, runtime](runtime::News news) { tasks_.spawn(follow(*runtime, std::move(news))); });
  }
}

void Lifecycle::stop_listening() {
  for (runtime::Runtime* runtime : runtimes_.all()) runtime->on_news({});
}

Task<> Lifecycle::follow(runtime::Runtime& runtime, runtime::News news) {
  // A runtime knows no ids, but it keeps the record. One that waits in a pool has none yet.
  auto recalled = co_await runtime.recall(news.handle);
  auto kept = recalled ? from_record(recalled->record) : std::unexpected(std::move(recalled.error()));
  if (!kept) co_return;
  auto guard = co_await locks_.lock(kept->id);
  auto row = co_await store_.find(Scope::everybody(), kept->id);
  if (!row || !*row || (*row)->handle != news.handle) co_return;
  State state = (*row)->status.state;
  if (state != State::running && state != State::paused) co_return;  // it has ended, or is about to
  if (news.trouble.empty())
    co_await follow_pause(runtime, **row);
  else
    co_await note_trouble(**row, std::move(news.trouble));
}

Task<> Lifecycle::follow_pause(runtime::Runtime& runtime, sandbox::Sandbox row) {
  bool was = row.status.state == State::paused;
  if (unreachable(row.id)) co_return;  // whoever finds out what it does compares the two
  auto is = co_await runtime.is_paused(row.handle);
  if (!is) {
    if (is.error().code != Code::not_found)
      log::warn("cannot see whether a sandbox is paused", {{"id", row.id}, {"error", is.error().message}});
    co_return;
  }
  if (*is == was) co_return;
  sandbox::Status status = status_while(*is ? State::paused : State::running, clock_.now());
  if (*is)
    stops_.paused(row.id);
  else
    stops_.resumed(row.id);
  uses_.set_asleep(row.id, Uses::Now::awake);
  log::info(*is ? "somebody else has paused a sandbox" : "somebody else has resumed a sandbox",
            {{"id", row.id}, {"owner", row.owner}});
  sandbox::Event event{status.changed, *is ? "Paused" : "Resumed",
                       status.message + " Somebody did that with the engine's own client."};
  keep_trying(row.id, co_await store_.note(row.id, {.status = std::move(status), .event = std::move(event)}));
}

// Each server that takes the sandbox over hears of it.
Task<> Lifecycle::note_trouble(sandbox::Sandbox row, std::string what) {
  auto known = co_await store_.events(Scope::everybody(), row.id, kLatest);
  for (size_t i = 0; known && i < known->size(); ++i) {
    if ((*known)[i].detail == what) co_return;
  }
  log::warn("something is wrong with a sandbox", {{"id", row.id}, {"owner", row.owner}, {"what", what}});
  sandbox::Event event{clock_.now(), "Trouble", std::move(what)};
  keep_trying(row.id, co_await store_.note(row.id, {.event = std::move(event)}));
}

}  // namespace osb::server
