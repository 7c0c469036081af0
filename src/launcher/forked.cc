#include "launcher/forked.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "sys/process.h"

namespace osb::launcher {
namespace {

constexpr char kHalfway = '+';
constexpr size_t kMostText = 2000;  // a pipe takes it at once, whether or not somebody reads

[[noreturn]] void run(const std::function<Result<void>(const Halfway&)>& work, int report, int go,
                      pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  auto halfway = [&]() -> Result<void> {
    TRY(write_all(report, std::string_view(&kHalfway, 1)));
    char byte = 0;
    if (::read(go, &byte, 1) != 1) return fail(Code::cancelled, "nobody says that it is to go on");
    return {};
  };
  auto done = work(halfway);
  std::string text = "ok";
  if (!done) {
    const Error& error = done.error();
    text = std::to_string(static_cast<int>(error.code)) + " " + std::to_string(error.sys_errno) + " " +
           error.message.substr(0, kMostText);
  }
  (void)write_all(report, text);
  ::_exit(0);
}

// What it has said so far.
void hear(Forked& forked) {
  std::string text(2 * kMostText, '\0');
  ssize_t n = ::read(forked.report.get(), text.data(), text.size());
  if (n > 0) forked.heard.append(text, 0, static_cast<size_t>(n));
}

}  // namespace

Result<Forked> fork_in_halves(const std::function<Result<void>(const Halfway&)>& work) {
  int report[2], go[2];
  if (::pipe2(report, O_CLOEXEC) < 0) return fail_errno("pipe");
  Forked forked{-1, Fd(), Fd(report[0]), Fd()};
  Fd their_report(report[1]);
  if (::pipe2(go, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd their_go(go[0]);
  forked.go = Fd(go[1]);
  // A grandchild may hold the other end when it has ended: nobody waits for that.
  if (::fcntl(report[0], F_SETFL, O_NONBLOCK) < 0) return fail_errno("pipe");
  pid_t self = ::getpid();
  forked.pid = ::fork();
  if (forked.pid == 0) {
    forked.go.reset();
    run(work, their_report.get(), their_go.get(), self);
  }
  if (forked.pid < 0) return fail_errno("fork");
  Cleanup undo;
  undo.push([&] { ::kill(forked.pid, SIGKILL); });
  forked.ended = TRY(sys::open_pidfd(forked.pid));
  undo.release();
  return forked;
}

Result<Forked> fork_work(const std::function<Result<void>()>& work) {
  return fork_in_halves([&](const Halfway&) { return work(); });
}

bool is_halfway(Forked& forked) {
  hear(forked);
  return forked.heard == std::string_view(&kHalfway, 1);
}

Result<void> go_on(const Forked& forked) { return write_all(forked.go.get(), "g"); }

Result<void> outcome_of(Forked& forked) {
  hear(forked);
  std::string_view text = forked.heard;
  if (text.starts_with(kHalfway)) text.remove_prefix(1);
  if (text.empty()) return fail(Code::cancelled, "its process was ended before it was done");
  if (text == "ok") return {};
  size_t first = text.find(' '), second = first == text.npos ? first : text.find(' ', first + 1);
  auto code = parse_number<int>(text.substr(0, first));
  if (!code || second == text.npos) return fail(Code::internal, "its process spoke nonsense");
  auto number = parse_number<int>(text.substr(first + 1, second - first - 1));
  return std::unexpected(
      Error{static_cast<Code>(*code), number.value_or(0), std::string(text.substr(second + 1))});
}

}  // namespace osb::launcher
