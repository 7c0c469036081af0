#pragma once

// For unit tests: a raw peer on the other end of a socket pair, which says exactly the bytes it is told to
// say.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/this_coro.hpp>
#include <string>
#include <utility>
#include <vector>

#include "http/server.h"
#include "io/socket.h"
#include "io/testing.h"

namespace osb::http::testing {

inline std::pair<io::Socket, io::Socket> socket_pair(io::Executor executor) {
  int fds[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) std::abort();
  return {*io::adopt(executor, Fd(fds[0])), *io::adopt(executor, Fd(fds[1]))};
}

class RawPeer {
 public:
  explicit RawPeer(io::Socket socket) : socket_(std::move(socket)) {}

  Task<> send(std::string bytes) {
    auto written = co_await io::write_all(socket_, bytes);
    EXPECT_TRUE(written.has_value()) << written.error().message;
  }
  // Up to and including the marker; what came behind it waits for the next call.
  Task<std::string> read_until(std::string marker) {
    while (true) {
      size_t at = received_.find(marker);
      if (at != std::string::npos) co_return take(at + marker.size());
      if (!co_await more()) {
        ADD_FAILURE() << "stream ended before '" << marker << "'; received: " << received_;
        co_return take(received_.size());
      }
    }
  }
  Task<std::string> read_exactly(size_t count) {
    while (received_.size() < count) {
      if (co_await more()) continue;
      ADD_FAILURE() << "stream ended after " << received_.size() << " of " << count << " bytes";
      co_return take(received_.size());
    }
    co_return take(count);
  }
  Task<std::string> read_to_end() {
    while (co_await more());
    co_return take(received_.size());
  }
  // A whole answer with a Content-Length: its head, then its body.
  Task<std::pair<std::string, std::string>> read_answer() {
    std::string head = co_await read_until("\r\n\r\n");
    size_t at = head.find("Content-Length: ");
    size_t length = at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
    std::string body = co_await read_exactly(length);
    co_return std::pair(std::move(head), std::move(body));
  }
  Task<bool> more() {
    std::vector<char> buffer(64 * 1024);
    auto got = co_await io::with_deadline(std::chrono::seconds(20), "peer", io::read_some(socket_, buffer));
    if (!got || *got == 0) {
      reset_ = !got;
      co_return false;
    }
    received_.append(buffer.data(), *got);
    co_return true;
  }
  void shut_write() {
    boost::system::error_code ignored;
    socket_.shutdown(io::Socket::shutdown_send, ignored);
  }
  void close() { socket_.close(); }
  bool was_reset() const { return reset_; }
  io::Socket& socket() { return socket_; }

 private:
  std::string take(size_t count) {
    std::string out = received_.substr(0, count);
    received_.erase(0, count);
    return out;
  }

  io::Socket socket_;
  std::string received_;
  bool reset_ = false;
};

// A connection to the server, as a raw peer.
inline RawPeer dial(Server& server, io::Executor executor) {
  auto [ours, theirs] = socket_pair(std::move(executor));
  server.adopt(std::move(theirs));
  return RawPeer(std::move(ours));
}

// Bytes that do not compress into a pattern: a misplaced piece shows.
inline std::string sample_bytes(size_t count) {
  std::string out(count, '\0');
  uint64_t x = 88172645463325252u;
  for (char& c : out) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    c = static_cast<char>(x);
  }
  return out;
}

}  // namespace osb::http::testing
