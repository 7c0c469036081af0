#include "execd/join.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace osb::execd {
namespace {

constexpr size_t kBuffer = 32 * 1024;
constexpr int kTries = 1000;  // 5 s in all
constexpr timespec kAgain{0, 5'000'000};

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
    }
  }
  void drain() {
    ssize_t put = ::write(to, bytes + begin, end - begin);
    if (put > 0) {
      begin += static_cast<size_t>(put);
      moved += static_cast<uint64_t>(put);
    } else if (put < 0 && !would_wait()) {
      deaf = true;
    }
    // What was meant for somebody who has gone is read all the same, for the end behind it.
    if (deaf) begin = end;
  }

  int from, to;
  uint64_t moved = 0;
  size_t begin = 0, end = 0;
  bool over = false, deaf = false;
  char bytes[kBuffer];
};

// Nothing tells when execd listens.
Result<Fd> connect_to(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0;; ++i) {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return fail_errno("socket");
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return fd;
    }
    if (errno != ECONNREFUSED || i == kTries) return fail_errno("connect");
    ::nanosleep(&kAgain, nullptr);
  }
}

Result<void> do_not_block(int fd) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return fail_errno("fcntl");
  return {};
}

}  // namespace

Result<void> relay(int in, int out, int words, int socket) {
  for (int fd : {in, out, socket}) TRY(do_not_block(fd));
  Way inward(in, socket), outward(socket, out);
  bool shut = false, told = false;
  while (!inward.over || !told) {
    if (inward.over && inward.empty() && !shut) {
      ::shutdown(socket, SHUT_WR);
      shut = true;
    }
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
  auto socket = connect_to(port);
  return socket && relay(STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket->get()) ? 0 : 1;
}

}  // namespace osb::execd
