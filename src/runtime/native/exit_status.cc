#include "runtime/native/exit_status.h"

#include <poll.h>
#include <string.h>
#include <sys/wait.h>

#include "sys/pidfd_info.h"

namespace osb::runtime {
namespace {

constexpr size_t kMostOutput = 128 * 1024;
constexpr int kCannotExecute = 127;  // as a shell says it

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name ? std::string("SIG") + name : "signal " + std::to_string(number);
}

End exited(int code) {
  return {End::Kind::exited, code, "the entry process ended with code " + std::to_string(code)};
}
End signalled(int number) {
  return {End::Kind::signalled, number, "the entry process was ended by " + signal_name(number)};
}

}  // namespace

// A program name may be as long as a request.
std::string why_not_started(const ControlState& failed) {
  constexpr size_t kMost = 4200;  // a path of the longest kind, and some words
  std::string path = failed.path.size() <= kMost ? failed.path : failed.path.substr(0, kMost) + "...";
  bool plain = failed.message.empty() || failed.message.size() > failed.path.size() + 200;
  std::string cause = plain ? errno_text(failed.sys_errno) : failed.message;
  return path + ": " + cause;
}

End describe_end(const ControlState& ended) {
  if (ended.kind == ControlState::Kind::failed)
    return {End::Kind::exited, kCannotExecute,
            "The entry process could not be started: " + why_not_started(ended)};
  if (ended.kind != ControlState::Kind::ended)
    return {End::Kind::lost, 0, "execd did not say how the entry process ended"};
  End end = ended.signal ? signalled(ended.signal) : exited(ended.exit_code);
  if (ended.stopped) end.detail = "the sandbox was stopped from outside: " + end.detail;
  // execd keeps to its bound, unless somebody inside has taken it over.
  bool too_long = ended.output.size() > kMostOutput;
  end.output = too_long ? ended.output.substr(ended.output.size() - kMostOutput) : ended.output;
  end.output_truncated = ended.output_truncated || too_long;
  return end;
}

End end_from_pidfd(int pidfd) {
  End lost{End::Kind::lost, 0, "the sandbox's processes are gone and nothing says why"};
  struct pollfd gone{pidfd, POLLIN, 0};
  if (pidfd < 0 || ::poll(&gone, 1, 0) <= 0) return lost;
  auto known = sys::exit_status_of(pidfd);
  if (!known) return lost;
  int status = *known;
  if (WIFSIGNALED(status)) {
    return {End::Kind::signalled, WTERMSIG(status),
            "the sandbox's first process was ended by " + signal_name(WTERMSIG(status))};
  }
  lost.detail = "the sandbox's first process ended with code " + std::to_string(WEXITSTATUS(status)) +
                " without saying what became of the entry process";
  return lost;
}

}  // namespace osb::runtime
