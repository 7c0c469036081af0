#include "execd/join.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/fd.h"

namespace osb::execd {
namespace {

constexpr size_t kBuffer = 32 * 1024;
constexpr auto kPatience = std::chrono::seconds(10);
constexpr auto kAgain = std::chrono::milliseconds(5);

bool would_wait() { return errno == EAGAIN || errno == EINTR; }

struct Way {
  Way(int from_, int to_) : from(from_), to(to_) {}
  bool empty() const { return begin == end; }
  bool wants_more() const { return empty() && !over; }
  void fill() {
    ssize_t got = ::read(from, bytes, sizeof bytes);
    if (got > 0) {
      begin = 0;
      end = static_cast<size_t>(got);
    } else if (got == 0 || !would_wait()) {
      over = true;
      broken = broken || got < 0;
    }
  }
  void drain() {
    ssize_t put = ::write(to, bytes + begin, end - begin);
    if (put > 0) {
      begin += static_cast<size_t>(put);
      moved += static_cast<uint64_t>(put);
    } else if (put < 0 && !would_wait()) {
      deaf = true;
      reset = reset || errno == ECONNRESET;
    }
    // What was meant for somebody who has gone is read all the same, for the end behind it.
    if (deaf) begin = end;
  }

  int from, to;
  uint64_t moved = 0;
  size_t begin = 0, end = 0;
  bool over = false, deaf = false;
  bool broken = false;  // over, without an end
  bool reset = false;   // deaf, and whoever reads from there finds an end that is none
  char bytes[kBuffer];
};

// ECONNREFUSED: nobody listens yet.
Result<Fd> begin_connection(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fail_errno("socket");
  int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 && errno != EINPROGRESS)
    return fail_errno("connect");
  return fd;
}

// Of one that was begun and has an answer.
Result<void> finish_connection(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
  if (error != 0) return fail_errno("connect", error);
  return {};
}

bool has_bytes(int fd) {
  int waiting = 0;
  return ::ioctl(fd, FIONREAD, &waiting) == 0 && waiting > 0;
}

Result<void> do_not_block(int fd) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return fail_errno("fcntl");
  return {};
}

}  // namespace

Result<Fd> connect_for(int in, uint16_t port, std::chrono::milliseconds patience) {
  using std::chrono::steady_clock;
  auto until = steady_clock::now() + patience;
  Fd fd;
  while (true) {
    if (!fd.valid()) {
      auto begun = begin_connection(port);
      if (!begun && begun.error().sys_errno != ECONNREFUSED) return begun;
      if (begun) fd = std::move(*begun);
    }
    auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
    if (left.count() <= 0) return fail(Code::timeout, "nobody takes the connection");
    if (!fd.valid()) left = std::min(left, kAgain);
    pollfd fds[] = {{fd.get(), POLLOUT, 0}, {in, 0, 0}};
    if (::poll(fds, 2, static_cast<int>(left.count())) < 0 && errno != EINTR) return fail_errno("poll");
    if (fds[1].revents != 0) {
      if (!has_bytes(in)) return fail(Code::cancelled, "nobody waits any more");
      in = -1;  // it has said all, and is gone or listens
    }
    if (fds[0].revents == 0) continue;
    auto done = finish_connection(fd.get());
    if (done) return fd;
    if (done.error().sys_errno != ECONNREFUSED) return std::unexpected(std::move(done.error()));
    fd.reset();
    ::poll(nullptr, 0, static_cast<int>(kAgain.count()));
  }
}

Result<void> relay(int in, int out, int words, int socket) {
  for (int fd : {in, out, socket}) TRY(do_not_block(fd));
  Way inward(in, socket), outward(socket, out);
  bool shut = false, told = false;
  while (!inward.over || !told) {
    if (inward.over && inward.empty() && !shut) {
      ::shutdown(socket, SHUT_WR);
      shut = true;
    }
    if (inward.reset) outward.broken = true;
    if (outward.over && outward.empty() && outward.broken && !told)
      return fail(Code::unavailable, "the connection broke");
    if (outward.over && outward.empty() && !told) {
      TRY(write_all(words, std::to_string(outward.moved) + "\n"));
      told = true;
      continue;
    }
    auto events = [](bool read, bool write) {
      return static_cast<short>((read ? POLLIN : 0) | (write ? POLLOUT : 0));
    };
    pollfd fds[] = {{in, events(inward.wants_more(), false), 0},
                    {out, events(false, !outward.empty()), 0},
                    {socket, events(outward.wants_more(), !inward.empty()), 0}};
    // An end that nobody waits for would be told again and again.
    for (pollfd& one : fds) one.fd = one.events == 0 ? -1 : one.fd;
    if (::poll(fds, 3, -1) < 0 && errno != EINTR) return fail_errno("poll");
    if (fds[0].revents != 0) inward.fill();
    if (fds[1].revents != 0) outward.drain();
    if (outward.deaf) return fail(Code::unavailable, "nobody listens");
    if (fds[2].revents == 0) continue;
    if (!inward.empty()) inward.drain();
    if (outward.wants_more()) outward.fill();
  }
  return {};
}

int join_streams(uint16_t port) {
  auto socket = connect_for(STDIN_FILENO, port, kPatience);
  return socket && relay(STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket->get()) ? 0 : 1;
}

}  // namespace osb::execd
