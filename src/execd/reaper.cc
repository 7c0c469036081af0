#include "execd/reaper.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "io/descriptor.h"
#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr int kMostAtOnce = 64;

ProcessUse process_use(const rusage& usage) {
  auto time = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return {time(usage.ru_utime) + time(usage.ru_stime), static_cast<uint64_t>(usage.ru_maxrss) * 1024};
}

}  // namespace

Result<std::unique_ptr<Reaper>> Reaper::create(io::Executor executor) {
  sigset_t chld;
  ::sigemptyset(&chld);
  ::sigaddset(&chld, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &chld, nullptr);
  Fd fd(::signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return fail_errno("signalfd");
  io::asio::posix::stream_descriptor descriptor(executor);
  TRY(io::assign(descriptor, std::move(fd)));
  return std::unique_ptr<Reaper>(new Reaper(std::move(descriptor)));
}

io::Task<> Reaper::run() {
  while (true) {
    auto ready = co_await io::wait_readable(fd_);
    if (!ready) {
      log::error("children are no longer reaped", {{"reason", ready.error().message}});
      co_return;
    }
    // One signal may stand for many children: what matters is that it is consumed before the children are.
    signalfd_siginfo info[8];
    while (::read(fd_.native_handle(), info, sizeof info) > 0) {
    }
    // The processes of a sandbox may end faster than they can be counted; others wait for their turn, too.
    while (!reap_some()) co_await io::yield();
  }
}

bool Reaper::reap_some() {
  int status = 0;
  rusage usage{};
  for (int i = 0; i < kMostAtOnce; ++i) {
    pid_t pid = ::wait4(-1, &status, WNOHANG | __WALL, &usage);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return true;
    auto it = watched_.find(pid);
    if (it == watched_.end()) continue;
    Ended ended = std::move(it->second);
    watched_.erase(it);
    ended(ExitStatus(status, process_use(usage)));
  }
  return false;
}

}  // namespace osb::execd
