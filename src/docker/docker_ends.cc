// How containers end. execd tells the end of its entry process to whoever connects, until somebody
// acknowledges it. Its connection ends with it: then the engine knows, or nobody does.

#include <signal.h>

#include "base/log.h"
#include "docker/docker_sandbox.h"
#include "runtime/native/exit_status.h"

namespace osb::docker {
namespace {

using runtime::ControlState;

constexpr io::Duration kAgainFirst = std::chrono::milliseconds(50), kAgainMost = std::chrono::seconds(5);
constexpr auto kOwnEnd = std::chrono::seconds(1);

bool is_last(const ControlState& state) {
  return state.kind == ControlState::Kind::ended || state.kind == ControlState::Kind::failed;
}

bool is_away(const Result<int>& status) {
  return !status && (status.error().code == Code::unavailable || status.error().code == Code::timeout);
}

End from_state(const ControlState& state) {
  End end = runtime::describe_end(state);
  if (state.out_of_memory.value_or(false)) {
    end.kind = End::Kind::out_of_memory;
    end.detail = "the entry process was killed: the memory limit was reached";
  }
  return end;
}

}  // namespace

End end_of(const Container& container) {
  if (container.out_of_memory)
    return {End::Kind::out_of_memory, SIGKILL, "the container was killed: the memory limit was reached"};
  if (container.status == "created") return {End::Kind::lost, 0, "the container was never started"};
  constexpr int kSignalled = 128;
  if (container.exit_code > kSignalled && container.exit_code < kSignalled + 65) {
    return {End::Kind::signalled, container.exit_code - kSignalled,
            "the container was ended by signal " + std::to_string(container.exit_code - kSignalled)};
  }
  // An engine that was started again did not see it end, and some of them call that a 0.
  if (container.exit_code == 0 && !container.finished) {
    return {End::Kind::lost, 0,
            "the container is gone, and the engine does not know when it ended, nor how" +
                (container.error.empty() ? "" : ": " + container.error)};
  }
  return {End::Kind::exited, container.exit_code,
          "the container ended with code " + std::to_string(container.exit_code) +
              (container.error.empty() ? "" : ": " + container.error)};
}

// Returns when execd has told the end.
Task<> DockerRuntime::hear(SandboxPtr sandbox, Result<End>& end) {
  // That of another server does not speak of it.
  if (sandbox->inherited) co_await io::Event(executor_).wait();
  if (sandbox->heard) {
    end = from_state(*sandbox->heard);
    co_return;
  }
  io::Duration again = kAgainFirst;
  while (true) {
    // A connection to one that is paused would wait in its queue.
    co_await sandbox->reachable.wait();
    if (!sandbox->control) {
      auto opened = co_await open_control(sandbox);
      if (!opened) {
        co_await io::sleep_for(again);
        again = std::min(again * 2, kAgainMost);
        continue;
      }
      sandbox->control = std::move(*opened);
      again = kAgainFirst;
    }
    auto state = co_await sandbox->control->next();
    if (state && is_last(*state)) {
      end = from_state(*state);
      co_return;
    }
    if (!state) {
      sandbox->control.reset();
      co_await io::sleep_for(again);
      again = std::min(again * 2, kAgainMost);
    }
  }
}

Task<End> DockerRuntime::end_of_one(Container container) {
  if (container.labels.contains(kOwnerLabel)) co_return end_of(container);
  End end = inherited_end(container);
  if (auto said = co_await inherited_logs(container.id)) {
    end.output = std::move(said->text);
    end.output_truncated = said->truncated;
  }
  co_return end;
}

// Returns when the container does not run any more, or when nobody knows.
Task<> DockerRuntime::ask_for_end(SandboxPtr sandbox, Result<End>& end) {
  auto status = co_await engine_.wait(sandbox->container);
  // While execd is there the sandbox runs, whoever else is away. On another host nobody can tell meanwhile.
  for (io::Duration again = kAgainFirst; is_away(status) && (sandbox->control || sandbox->by_engine());
       again = std::min(again * 2, kAgainMost)) {
    co_await io::sleep_for(again);
    status = co_await engine_.wait(sandbox->container);
  }
  Result<Container> container = fail(Code::not_found, "");
  if (status) container = co_await engine_.inspect(sandbox->container);
  const Error* error = !status ? &status.error() : !container ? &container.error() : nullptr;
  if (!error) {
    end = co_await end_of_one(std::move(*container));
  } else if (error->code == Code::not_found) {
    end = End{End::Kind::lost, 0, "somebody else has removed the container"};
  } else {
    end = std::unexpected(*error);
  }
}

Task<> DockerRuntime::watch(SandboxPtr sandbox) {
  // One of its own each: whoever comes second is cancelled, and writes that down, too.
  Result<End> told = fail(Code::cancelled, "the server ends"), asked = told;
  int first = co_await io::race(hear(sandbox, told), ask_for_end(sandbox, asked));
  sandbox->end = std::move(first == 0 ? told : asked);
  if (sandbox->removed) sandbox->end = End{End::Kind::signalled, SIGKILL, "the sandbox was removed"};
  // A server that ends leaves it to the next one.
  if (!sandbox->end && sandbox->end.error().code != Code::cancelled)
    log::warn("nobody knows what a container does",
              {{"handle", sandbox->handle}, {"error", sandbox->end.error().message}});
  sandbox->over.set();
}

Task<Result<End>> DockerRuntime::wait(std::string handle) {
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end()) co_return fail(Code::not_found, "sandbox " + handle + " is not known");
  SandboxPtr sandbox = found->second;
  co_await sandbox->over.wait();
  co_return sandbox->end;
}

Task<Result<void>> DockerRuntime::settle(std::string handle) {
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end()) co_return Result<void>();
  SandboxPtr sandbox = found->second;
  if (!sandbox->over.is_set()) co_return fail(Code::wrong_state, "the sandbox has not ended");
  // It ends by itself then, with the code of its entry process.
  if (sandbox->control && co_await sandbox->control->acknowledge())
    (void)co_await io::with_deadline(kOwnEnd, "the container", engine_.wait(sandbox->container));
  // The files stay until the sandbox is deleted; no process does.
  auto killed = co_await engine_.kill(sandbox->container);
  bool gone = !killed && (killed.error().code == Code::not_found || killed.error().code == Code::wrong_state);
  if (!killed && !gone) {
    // Podman has no status of its own for a container that has ended already.
    auto now = co_await engine_.inspect(sandbox->container);
    if (!now || now->running) co_return killed;
  }
  sandboxes_.erase(handle);
  co_return Result<void>();
}

}  // namespace osb::docker
