#include "cli/terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "io/socket.h"

namespace osb::cli {

Result<Signals> Signals::create(io::Executor executor) {
  sigset_t set;
  ::sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, number);
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return fail_errno("signalfd");
  if (int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0)
    return fail_errno("block signals", error);
  ::signal(SIGPIPE, SIG_IGN);
  io::asio::posix::stream_descriptor stream(executor);
  boost::system::error_code error;
  stream.assign(fd.get(), error);
  if (error) return std::unexpected(io::to_error("signalfd", error));
  fd.release();
  return Signals(std::move(stream));
}

void Signals::drain() {
  signalfd_siginfo info{};
  while (::read(fd_.native_handle(), &info, sizeof info) == sizeof info) {
    last_ = static_cast<int>(info.ssi_signo);
    if (!first_) first_ = last_;
    ++count_;
  }
}

io::Task<> Signals::more_than(int count) {
  for (drain(); count_ <= count; drain()) {
    if (!co_await io::wait_readable(fd_)) co_return;
  }
}

int Signals::count() {
  drain();
  return count_;
}

std::optional<int> Signals::first() {
  drain();
  return first_;
}

std::optional<int> Signals::last() {
  drain();
  return last_;
}

Result<void> write_unless_signalled(int fd, std::string_view bytes, Signals& signals, int heard) {
  while (!bytes.empty()) {
    // A pipe that polls writable takes PIPE_BUF bytes without blocking; a longer write might block past a
    // signal.
    pollfd waits[] = {{fd, POLLOUT, 0}, {signals.descriptor(), POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return fail_errno("poll");
    }
    if (waits[1].revents && signals.count() > heard) return fail(Code::cancelled, "interrupted");
    ssize_t n = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return fail_errno("write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<void> write_event(const StreamEvent& event, Signals& signals, int heard) {
  int fd = event.kind == StreamEvent::Kind::output ? STDOUT_FILENO : STDERR_FILENO;
  return write_unless_signalled(fd, event.text, signals, heard);
}

}  // namespace osb::cli
