#pragma once

// For unit tests of the HTTP server: one with handlers of every kind, which runs beside a test that plays its
// client.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/strings.h"
#include "http/server.h"
#include "http/test_support.h"

namespace osb::http::server_fixture {

using namespace std::chrono_literals;
using io::testing::run;
using testing::dial;
using testing::RawPeer;
using testing::sample_bytes;

inline size_t count_of(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(word, at)) != text.npos; at += word.size()) ++count;
  return count;
}

inline std::string g_log;    // what handlers note down
inline bool g_hold = false;  // they wait for

inline Task<> handle(Request& request, ResponseWriter& response) {
  std::string_view path = request.head.path();
  if (path == "/hello") {
    std::ignore = co_await response.send(200, {{"Content-Type", "text/plain"}}, "hello");
  } else if (path == "/echo") {
    auto body = co_await read_all(*request.body, 64 << 20);
    if (!body) {
      g_log += "body: " + body.error().message + "\n";
      std::ignore = co_await response.send(400, {}, body.error().message);
    } else {
      std::ignore = co_await response.send(200, {}, std::move(*body));
    }
  } else if (path == "/stream") {
    std::ignore = co_await response.start(
        200, {{"Content-Type", "text/event-stream"}, {"Connection", "keep-alive"}}, std::nullopt);
    std::vector<char> buffer(16 * 1024);
    while (true) {
      auto got = co_await request.body->read_some(buffer);
      if (!got || *got == 0) break;
      auto written = co_await response.write({buffer.data(), *got});
      if (!written) co_return;
    }
    std::ignore = co_await response.finish();
  } else if (path == "/sized") {
    std::ignore = co_await response.start(200, {}, 10);
    std::ignore = co_await response.write("01234");
    std::ignore = co_await response.write("56789");
    std::ignore = co_await response.finish();
  } else if (path == "/pipe") {
    // A pipe at a time; more of them than declared with ?more.
    constexpr size_t kPipes = 40, kSize = 60'000;
    const std::string content = sample_bytes(kPipes * kSize);
    size_t count = kPipes + (request.head.query() == "more" ? 1 : 0);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) co_return;
    Fd reader(ends[0]), writer(ends[1]);
    std::ignore = co_await response.start(200, {}, content.size());
    for (size_t i = 0; i < count; ++i) {
      std::ignore = write_all(writer.get(), std::string_view(content).substr(i % kPipes * kSize, kSize));
      auto written = co_await response.write_pipe(reader.get(), kSize);
      if (written) continue;
      g_log += "pipe: " + std::string(to_string(written.error().code)) + "\n";
      co_return;
    }
    std::ignore = co_await response.finish();
  } else if (path == "/pipe-chunked") {
    std::ignore = co_await response.start(200, {}, std::nullopt);
    auto written = co_await response.write_pipe(-1, 3);
    g_log += written ? "written\n" : "refused\n";
    std::ignore = co_await response.finish();
  } else if (path == "/too-long") {
    std::ignore = co_await response.start(200, {}, 3);
    auto written = co_await response.write("01234");
    g_log += written ? "written\n" : "refused\n";
  } else if (path == "/too-short") {
    std::ignore = co_await response.start(200, {}, 9);
    std::ignore = co_await response.write("01234");
    auto finished = co_await response.finish();
    g_log += finished ? "finished\n" : "refused\n";
  } else if (path == "/forgets") {
    response.always("X-Request-ID", "r1");
  } else if (path == "/half") {
    std::ignore = co_await response.start(200, {}, std::nullopt);
    std::ignore = co_await response.write("half");
  } else if (path == "/throws") {
    throw std::runtime_error("oops");
  } else if (path == "/empty") {
    std::ignore = co_await response.send(204, {{"Content-Length", "5"}}, "12345");
  } else if (path == "/fields") {
    response.always("X-Always", "1");
    response.always("X-Both", "always");
    Headers headers{{"X-Both", "own"},
                    {"Set-Cookie", "a=1"},
                    {"Set-Cookie", "b=2"},
                    {"Date", "then"},
                    {"Content-Length", "99"}};
    std::ignore = co_await response.send(200, std::move(headers), "ok");
  } else if (path == "/split") {
    auto sent = co_await response.send(200, {{"X-Evil", "a\r\nSet-Cookie: b"}}, "ok");
    g_log += sent ? "sent\n" : "refused\n";
  } else if (path == "/twice") {
    std::ignore = co_await response.send(200, {}, "first");
    auto again = co_await response.send(200, {}, "second");
    g_log += again ? "sent\n" : "refused\n";
  } else if (path == "/refuse") {
    std::ignore = co_await response.send(401, {}, "refused");
  } else if (path == "/gone") {
    std::ignore = co_await read_all(*request.body, 1 << 10);
    while (g_hold) co_await io::sleep_for(1ms);
    g_log += co_await request.sender->gone() ? "gone\n" : "there\n";
    std::ignore = co_await response.send(200, {}, "made");
  } else if (path == "/late-reader") {
    co_await io::sleep_for(600ms);
    auto body = co_await read_all(*request.body, 64 << 20);
    std::ignore = co_await response.send(body ? 200 : 408, {}, body ? "" : body.error().message);
  } else if (path == "/ignore-body") {
    std::ignore = co_await response.send(200, {}, "ignored");
  } else if (path == "/endless") {
    std::ignore = co_await response.start(200, {}, std::nullopt);
    std::string piece(64 * 1024, 'x');
    while (true) {
      auto written = co_await response.write(piece);
      if (written) continue;
      g_log += "write: " + std::string(to_string(written.error().code)) + "\n";
      co_return;
    }
  } else if (path == "/upgrade") {
    std::ignore = co_await response.start(101, {{"Connection", "Upgrade"}, {"Upgrade", "test"}}, 0);
    std::ignore = co_await response.finish();
    auto [socket, bytes] = response.take_over();
    std::ignore = co_await io::write_all(*socket, "<" + bytes + ">");
  } else if (path == "/wait") {
    co_await io::sleep_for(1h);
  } else if (path == "/wait-closed") {
    co_await response.wait_closed();
    g_log += "closed\n";
  } else {
    std::ignore = co_await response.json(404, "{}");
  }
}

// Runs a test body beside a server.
using Body = Task<> (*)(Server&, io::Executor);
inline Task<> serve(Body body, ServerLimits limits) {
  auto executor = co_await io::asio::this_coro::executor;
  g_log.clear();
  Server server(executor, handle, limits);
  co_await body(server, executor);
  co_await server.close(1s);
  EXPECT_EQ(server.connections(), 0u);
}
inline void with_server(Body body, ServerLimits limits = {}) { run(serve(body, limits)); }

inline std::string get(std::string path, std::string fields = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}
inline std::string post(std::string path, std::string fields) {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

}  // namespace osb::http::server_fixture
