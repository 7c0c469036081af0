// How sandboxes end, as the native runtime hears of it. execd tells the end to whoever connects, again and
// again, until somebody acknowledges it: that is settle(), when the end is stored. A connection that breaks
// says nothing; only a process that is gone is an end without words.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include "base/log.h"
#include "io/descriptor.h"
#include "runtime/native/exit_status.h"
#include "runtime/native/native_sandbox.h"

namespace osb::runtime {
namespace {

constexpr auto kConnectDeadline = std::chrono::seconds(10);
constexpr auto kDeathDeadline = std::chrono::seconds(1);  // its connection closed already
constexpr io::Duration kConnectAgainFirst = std::chrono::milliseconds(50);
constexpr io::Duration kConnectAgainMost = std::chrono::seconds(5);

}  // namespace

bool is_last(const ControlState& state) {
  return state.kind == ControlState::Kind::ended || state.kind == ControlState::Kind::failed;
}

bool is_gone(const Fd& pidfd) {
  struct pollfd ended{pidfd.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) > 0;
}

Task<> NativeRuntime::until_gone(SandboxPtr sandbox) {
  // A copy, because whoever waits for it owns and closes it, also when the wait is given up.
  Fd copy(::fcntl(sandbox->pidfd.get(), F_DUPFD_CLOEXEC, 0));
  io::asio::posix::stream_descriptor gone(executor_);
  // Out of descriptors: look again later.
  if (!io::assign(gone, std::move(copy))) co_return co_await io::sleep_for(kDeathDeadline);
  (void)co_await io::wait_readable(gone);
}

Task<Result<ControlState>> NativeRuntime::hear_end(SandboxPtr sandbox) {
  if (sandbox->heard) co_return std::move(*sandbox->heard);
  io::Duration again = kConnectAgainFirst;
  while (!sandbox->removed && !is_gone(sandbox->pidfd)) {
    if (!sandbox->reachable.is_set()) {
      co_await io::race(sandbox->reachable.wait(), until_gone(sandbox));
      continue;
    }
    if (!sandbox->control) {
      auto opened = co_await io::with_deadline(
          kConnectDeadline, "execd", ControlConnection::open(socket_path(sandbox->handle, ".control")));
      if (!opened) {
        log::warn("cannot reach a sandbox that runs",
                  {{"handle", sandbox->handle}, {"error", opened.error().message}});
        co_await io::race(io::sleep_for(again), until_gone(sandbox));
        again = std::min(again * 2, kConnectAgainMost);
        continue;
      }
      sandbox->control = std::move(*opened);
    }
    auto state = co_await sandbox->control->next();
    if (state && is_last(*state)) co_return state;
    if (state) {
      // It runs: whoever was killed for memory so far was another process.
      sandbox->ooms_before = co_await count_ooms(sandbox->handle);
      continue;
    }
    sandbox->control.reset();
    co_await io::race(io::sleep_for(kDeathDeadline), until_gone(sandbox));
  }
  co_return fail(Code::unavailable, "execd is gone");
}

Task<> NativeRuntime::watch(SandboxPtr sandbox) {
  auto last = co_await hear_end(sandbox);
  // Of one that is being deleted nobody asks more.
  sandbox->end = sandbox->removed ? End{End::Kind::signalled, SIGKILL, "it was deleted"}
                                  : co_await explain(sandbox, std::move(last));
  sandbox->ended.set();
}

Task<Result<End>> NativeRuntime::wait(std::string handle) {
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end()) co_return fail(Code::not_found, "sandbox " + handle + " is not known here");
  SandboxPtr sandbox = found->second;
  co_await sandbox->ended.wait();
  co_return sandbox->end;
}

Task<Result<void>> NativeRuntime::settle(std::string handle) {
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end()) co_return Result<void>{};
  SandboxPtr sandbox = found->second;
  if (!sandbox->ended.is_set()) co_return fail(Code::wrong_state, "the sandbox has not ended");
  if (sandbox->control) (void)co_await sandbox->control->acknowledge();
  // The files stay until the sandbox is deleted; no process does.
  CO_TRY(co_await launcher_.ask(launcher::StopRequest{{handle}}));
  sandboxes_.erase(handle);
  co_return Result<void>{};
}

Task<End> NativeRuntime::explain(SandboxPtr sandbox, Result<ControlState> last) {
  if (!last) co_return co_await explain_death(sandbox->handle, sandbox->pidfd.get(), sandbox->ooms_before);
  End end = describe_end(*last);
  bool killed = (end.kind == End::Kind::signalled && end.number == SIGKILL) ||
                (end.kind == End::Kind::exited && end.number == 128 + SIGKILL);
  if (!killed) co_return end;
  // execd looks whenever something ends in the sandbox; from here only the sum of all these ends can be seen.
  bool no_memory = last->out_of_memory ? *last->out_of_memory
                                       : co_await count_ooms(sandbox->handle) > sandbox->ooms_before;
  if (no_memory) {
    end.kind = End::Kind::out_of_memory;
    end.detail = "the entry process was killed: the memory limit was reached";
  }
  co_return end;
}

// execd itself is gone without a word: the kernel may still know why.
Task<End> NativeRuntime::explain_death(std::string handle, int pidfd, int64_t ooms_before) {
  if (co_await count_ooms(std::move(handle)) > ooms_before)
    co_return End{End::Kind::out_of_memory, SIGKILL, "the sandbox was killed: the memory limit was reached"};
  co_return end_from_pidfd(pidfd);
}

Task<int64_t> NativeRuntime::count_ooms(std::string handle) {
  auto answer = co_await launcher_.ask(launcher::OomsRequest{{std::move(handle)}});
  co_return answer ? answer->body.count : 0;
}

}  // namespace osb::runtime
