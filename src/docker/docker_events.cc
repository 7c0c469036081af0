// What others do to containers of this service, by the engine's own means: `docker pause`, or the end of what
// polices a sandbox. The engine tells it on one stream. What happened while there was none is found by one
// look at all containers whenever a stream begins.
//
// Nothing here decides: whoever hears of it asks what is so now (runtime/runtime.h). Ends are heard elsewhere
// (docker_ends.cc).

#include <unordered_map>

#include "base/log.h"
#include "docker/docker_sandbox.h"

namespace osb::docker {
namespace {

using Kind = EngineEvent::Kind;
using Time = std::chrono::steady_clock::time_point;

constexpr io::Duration kAgainFirst = std::chrono::milliseconds(100), kAgainMost = std::chrono::seconds(5);
// An engine pauses a container while it makes an image of it, and its own notes follow events that come late:
// for a moment after the container went on they say again that it is paused.
constexpr io::Duration kSettling = std::chrono::milliseconds(200);

std::string value_of(const Labels& labels, const char* name) {
  auto found = labels.find(name);
  return found == labels.end() ? "" : found->second;
}

}  // namespace

void DockerRuntime::on_news(std::function<void(runtime::News)> heard) {
  heard_ = std::move(heard);
  if (heard_ && !std::exchange(listens_, true)) tasks_.spawn(follow_events());
}

Task<Result<bool>> DockerRuntime::is_paused(std::string handle) {
  auto container = CO_TRY(co_await find(handle));
  if (!container.running) co_return fail(Code::not_found, "the container does not run");
  if (!container.paused) co_return false;
  co_await io::sleep_for(kSettling);
  container = CO_TRY(co_await find(std::move(handle)));
  co_return container.paused;
}

// Those of the original server have no owner in their labels.
std::optional<std::string> DockerRuntime::label_of_events() const {
  auto handles = files_.list();
  bool inherits = settings_.adopt || !handles;
  for (size_t i = 0; !inherits && i < handles->size(); ++i) inherits = files_.is_taken_over((*handles)[i]);
  if (inherits) return std::nullopt;
  return std::string(kOwnerLabel) + "=" + owner_;
}

Task<> DockerRuntime::follow_events() {
  bool warned = false;
  for (io::Duration again = kAgainFirst;; again = std::min(again * 2, kAgainMost)) {
    Time began = std::chrono::steady_clock::now();
    auto broken = co_await follow_stream();
    if (broken.code == Code::cancelled) co_return;
    // Nobody else may have been speaking with it when it went, and then no call would fail.
    engine_.forget();
    if (std::chrono::steady_clock::now() - began > kAgainMost) {
      again = kAgainFirst;
      warned = false;
    }
    if (!std::exchange(warned, true))
      log::warn("the engine's events are not heard, asking again", {{"error", broken.message}});
    co_await io::sleep_for(again);
  }
}

// Until it breaks; why.
Task<Error> DockerRuntime::follow_stream() {
  auto label = label_of_events();
  auto stream = co_await engine_.events(label);
  if (!stream) co_return std::move(stream.error());
  // What happens from here on comes on the stream.
  if (auto seen = co_await look_at_all(label); !seen) co_return std::move(seen.error());
  while (true) {
    auto event = co_await stream->next();
    if (!event) co_return std::move(event.error());
    take(*event);
  }
}

Task<Result<void>> DockerRuntime::look_at_all(std::optional<std::string> label) {
  auto all = CO_TRY(co_await engine_.containers_with({label.value_or(kIdLabel)}));
  std::unordered_map<std::string_view, const Listed*> by_id;
  for (const Listed& one : all) {
    by_id[one.id] = &one;
    bool over = one.state == "exited" || one.state == "dead";
    if (over && is_sidecar(one.labels)) tell_sidecar_end(value_of(one.labels, kHandleLabel));
  }
  for (const auto& [handle, sandbox] : sandboxes_) {
    auto found = by_id.find(sandbox->container);
    if (found == by_id.end()) continue;
    if (found->second->state == "paused") note_paused(*sandbox, true);
    if (found->second->state == "running") note_paused(*sandbox, false);
  }
  co_return Result<void>();
}

bool DockerRuntime::is_sidecar(const Labels& labels) const {
  return !value_of(labels, kSidecarLabel).empty() && value_of(labels, kOwnerLabel) == owner_;
}

void DockerRuntime::take(const EngineEvent& event) {
  if (event.kind == Kind::died || event.kind == Kind::destroyed) {
    if (is_sidecar(event.labels)) tell_sidecar_end(value_of(event.labels, kHandleLabel));
    return;
  }
  for (const auto& [handle, sandbox] : sandboxes_) {
    if (sandbox->container == event.container) return note_paused(*sandbox, event.kind == Kind::paused);
  }
}

// What this server does itself is known already when the engine tells it.
void DockerRuntime::note_paused(Sandbox& sandbox, bool paused) {
  if (!paused) sandbox.reachable.set();
  if (std::exchange(sandbox.paused, paused) == paused || sandbox.over.is_set()) return;
  if (heard_) heard_({.handle = sandbox.handle});
}

// One that goes with its sandbox is not known any more by then.
void DockerRuntime::tell_sidecar_end(const std::string& handle) {
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end() || std::exchange(found->second->egress_ended, true)) return;
  log::warn("the egress of a sandbox has ended", {{"handle", handle}});
  if (heard_)
    heard_(
        {.handle = handle, .trouble = std::string(kEgressEnded) + ": save what is needed, and make it anew"});
}

}  // namespace osb::docker
