#pragma once

// For unit tests of the reverse proxy: one that runs beside a test, which plays client and upstream.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/reverse_proxy.h"
#include "http/test_support.h"

namespace osb::http::proxy_fixture {

using namespace std::chrono_literals;
using io::testing::run;
using testing::dial;
using testing::RawPeer;
using testing::sample_bytes;
using testing::socket_pair;

// A proxy in front of one upstream connection, whose other end a test plays by hand.
struct Proxy {
  explicit Proxy(io::Executor e, ServerLimits limits = {})
      : executor(e), server(e, [this](Request& r, ResponseWriter& w) { return handle(r, w); }, limits) {
    auto [ours, theirs] = socket_pair(e);
    connection.emplace(std::move(ours));
    upstream.emplace(std::move(theirs));
  }

  Task<> handle(Request& request, ResponseWriter& response) {
    Forward what;
    what.head = request.head;
    what.head_timeout = head_timeout;
    if (stopped) what.stopped = [this] { return *stopped; };
    what.edit_response = [](ResponseHead& head) { head.headers.set("X-Edited", "yes"); };
    Forward again = what;
    last = co_await forward(request, response, *connection, std::move(what));
    if (spare && last.outcome == Relay::not_answered && !last.request_sent)
      last = co_await forward(request, response, *spare, std::move(again));
    reusable = connection->reusable();
    ++answered;
    if (drop) connection.reset();
    if (last.outcome == Relay::not_answered) {
      std::ignore = co_await response.send(last.error.code == Code::invalid_argument ? 400 : 502, {},
                                           last.error.message);
    }
  }
  Task<> wait_answered(int count) {
    while (answered < count) co_await io::sleep_for(1ms);
  }

  io::Executor executor;
  Server server;
  std::optional<ClientConnection> connection;
  std::optional<ClientConnection> spare;  // for a repeat
  std::optional<RawPeer> upstream;
  io::Duration head_timeout = 10s;
  std::optional<io::Duration> stopped;
  RelayResult last;
  bool reusable = false;
  bool drop = false;  // the upstream connection, after the exchange
  int answered = 0;
};

using Body = Task<> (*)(Proxy&, RawPeer);
inline Task<> with_proxy_task(Body body, ServerLimits limits) {
  auto executor = co_await io::asio::this_coro::executor;
  Proxy proxy(executor, limits);
  co_await body(proxy, dial(proxy.server, executor));
  co_await proxy.server.close(0s);
}
inline void with_proxy(Body body, ServerLimits limits = {}) {
  ::signal(SIGPIPE, SIG_IGN);  // as every process with a proxy does
  run(with_proxy_task(body, limits));
}

inline std::string get(std::string path, std::string fields = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}
inline std::string post(std::string fields) { return "POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"; }

inline Task<> send_all(RawPeer* peer, std::string bytes) { co_await peer->send(std::move(bytes)); }

}  // namespace osb::http::proxy_fixture
