#include "http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/test_support.h"

namespace osb::http {
namespace {

using namespace std::chrono_literals;
using io::testing::run;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawPeer;
using testing::sample_bytes;
using testing::socket_pair;
using ::testing::StartsWith;

RequestHead get(std::string target) {
  return {.method = "GET", .target = std::move(target), .headers = {{"Host", "a"}}};
}
RequestHead post(std::string target) {
  return {.method = "POST", .target = std::move(target), .headers = {{"Host", "a"}}};
}

Task<> echo(Request& request, ResponseWriter& response) {
  if (request.head.path() == "/stream") {
    std::ignore = co_await response.start(200, {}, std::nullopt);
    std::vector<char> buffer(10'000);
    while (true) {
      auto got = co_await request.body->read_some(buffer);
      if (!got || *got == 0) break;
      std::ignore = co_await response.write({buffer.data(), *got});
    }
    std::ignore = co_await response.finish();
    co_return;
  }
  auto body = co_await read_all(*request.body, 64 << 20);
  Headers headers{{"X-Method", request.head.method}, {"X-Target", request.head.target}};
  std::ignore = co_await response.send(200, std::move(headers), body ? std::move(*body) : "broken");
}

Task<> exchanges() {
  auto executor = co_await io::asio::this_coro::executor;
  Server server(executor, echo);
  auto [ours, theirs] = socket_pair(executor);
  server.adopt(std::move(theirs));
  ClientConnection connection(std::move(ours));
  for (int i = 0; i < 3; ++i) {
    auto answer = co_await fetch(connection, post("/x?y"), "some body");
    EXPECT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(answer->head.status, 200);
    EXPECT_EQ(answer->head.headers.get("x-target"), "/x?y");
    EXPECT_EQ(answer->body, "some body");
    EXPECT_TRUE(connection.reusable());
    EXPECT_TRUE(connection.alive());
    auto empty = co_await fetch(connection, get("/"), "");
    EXPECT_EQ(empty->body, "");
    auto head = co_await fetch(connection, {.method = "HEAD", .target = "/", .headers = {{"Host", "a"}}}, "");
    EXPECT_TRUE(head.has_value());
    EXPECT_EQ(head->body, "");
    EXPECT_TRUE(connection.reusable());
  }
  EXPECT_EQ(server.connections(), 1u);
  auto limited = co_await fetch(connection, post("/"), std::string(1000, 'x'), 999);
  EXPECT_EQ(limited.error().code, Code::too_large);
  EXPECT_FALSE(connection.reusable());
  co_await server.close(0s);
  EXPECT_FALSE(connection.alive());
}
TEST(Client, Exchanges) { run(exchanges()); }

constexpr const char* kEmptyAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

// One timer serves all of them, and each has its own limit.
Task<> limits_on_heads() {
  auto executor = co_await io::asio::this_coro::executor;
  auto [ours, theirs] = socket_pair(executor);
  RawPeer peer(std::move(theirs));
  ClientConnection connection(std::move(ours));
  for (auto limit : {10s, 1s, 10s}) {
    EXPECT_TRUE(co_await connection.send_head(get("/"), 0));
    connection.limit_head(limit);
    co_await peer.send(kEmptyAnswer);
    EXPECT_TRUE(co_await connection.read_head());
    EXPECT_FALSE(connection.head_is_late());
  }
  // Shorter than what the timer was started for.
  EXPECT_TRUE(co_await connection.send_head(get("/"), 0));
  auto begun = std::chrono::steady_clock::now();
  connection.limit_head(20ms);
  EXPECT_EQ((co_await connection.read_head()).error().code, Code::cancelled);
  EXPECT_TRUE(connection.head_is_late());
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 20ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 900ms);
}
TEST(Client, LimitsOnHeads) { run(limits_on_heads()); }

Task<> answer_after(RawPeer* peer, io::Duration pause) {
  co_await io::sleep_for(pause);
  co_await peer->send(kEmptyAnswer);
}

// The timer of an earlier wait ends in the middle of a later one, which has more time.
Task<> earlier_limits() {
  auto executor = co_await io::asio::this_coro::executor;
  auto [ours, theirs] = socket_pair(executor);
  RawPeer peer(std::move(theirs));
  ClientConnection connection(std::move(ours));
  EXPECT_TRUE(co_await connection.send_head(get("/"), 0));
  connection.limit_head(20ms);
  co_await peer.send(kEmptyAnswer);
  EXPECT_TRUE(co_await connection.read_head());
  EXPECT_TRUE(co_await connection.send_head(get("/"), 0));
  connection.limit_head(10s);
  io::TaskGroup later(executor);
  later.spawn(answer_after(&peer, 60ms));
  EXPECT_TRUE(co_await connection.read_head());
  EXPECT_FALSE(connection.head_is_late());
  // Nor does a limit outlive its wait.
  co_await io::sleep_for(30ms);
  EXPECT_TRUE(connection.reusable());
  co_await later.close();
}
TEST(Client, EarlierLimitsEndNothing) { run(earlier_limits()); }

Task<> send_chunks(ClientConnection* connection, std::string bytes) {
  for (std::string_view left = bytes; !left.empty();) {
    std::string_view piece = left.substr(0, 123'457);
    auto written = co_await connection->write(piece);
    EXPECT_TRUE(written.has_value());
    left.remove_prefix(piece.size());
  }
  auto finished = co_await connection->finish();
  EXPECT_TRUE(finished.has_value());
}

Task<> streams() {
  auto executor = co_await io::asio::this_coro::executor;
  Server server(executor, echo);
  auto [ours, theirs] = socket_pair(executor);
  server.adopt(std::move(theirs));
  ClientConnection connection(std::move(ours));
  std::string body = sample_bytes(20 << 20);
  for (bool chunked : {true, false}) {
    std::optional<uint64_t> length;
    if (!chunked) length = body.size();
    auto sent = co_await connection.send_head(post("/stream"), length);
    EXPECT_TRUE(sent.has_value());
    io::TaskGroup group(executor);
    group.spawn(send_chunks(&connection, body));
    auto head = co_await connection.read_head();
    EXPECT_TRUE(head.has_value());
    EXPECT_EQ(connection.body().length(), std::nullopt);
    auto got = co_await read_all(connection.body(), 64 << 20);
    EXPECT_TRUE(got.has_value() && *got == body);
    co_await group.close();
    EXPECT_TRUE(connection.reusable());
  }
  co_await server.close(0s);
}
TEST(Client, StreamsBothWays) { run(streams()); }

Task<> wrong_order() {
  auto executor = co_await io::asio::this_coro::executor;
  auto [ours, theirs] = socket_pair(executor);
  ClientConnection connection(std::move(ours));
  EXPECT_EQ((co_await connection.read_head()).error().code, Code::wrong_state);
  EXPECT_EQ((co_await connection.write("x")).error().code, Code::wrong_state);
  EXPECT_TRUE((co_await connection.send_head(post("/"), 3)).has_value());
  EXPECT_FALSE(connection.touched());
  EXPECT_EQ((co_await connection.send_head(post("/"), 3)).error().code, Code::wrong_state);
  EXPECT_EQ((co_await connection.write("four")).error().code, Code::invalid_argument);
  EXPECT_EQ((co_await connection.finish()).error().code, Code::invalid_argument);
  EXPECT_TRUE((co_await connection.write("abc")).has_value());
  EXPECT_TRUE(connection.touched());
  EXPECT_TRUE((co_await connection.finish()).has_value());
  RawPeer peer(std::move(theirs));
  std::string bytes = co_await peer.read_until("abc");
  EXPECT_EQ(bytes, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
}
TEST(Client, RefusesTheWrongOrder) { run(wrong_order()); }

// What the other side says, and what comes of it.
struct Script {
  std::string answer;
  bool close = true;
};
Task<> play(io::Socket socket, Script script) {
  RawPeer peer(std::move(socket));
  std::ignore = co_await peer.read_until("\r\n\r\n");
  co_await peer.send(script.answer);
  if (!script.close) std::ignore = co_await peer.read_to_end();
}
struct Seen {
  Result<Response> response;
  bool reusable;
};
Task<Seen> against(Script script, std::string method = "GET") {
  auto executor = co_await io::asio::this_coro::executor;
  auto [ours, theirs] = socket_pair(executor);
  io::TaskGroup group(executor);
  group.spawn(play(std::move(theirs), script));
  Seen seen{fail(Code::internal, ""), false};
  {
    ClientConnection connection(std::move(ours));
    seen.response =
        co_await fetch(connection, {.method = method, .target = "/", .headers = {{"Host", "a"}}}, "");
    seen.reusable = connection.reusable();
  }
  while (group.size() > 0) co_await io::yield();
  co_return seen;
}

TEST(Client, ReadsAnswers) {
  auto seen = run(against({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false}));
  EXPECT_EQ(seen.response->body, "ok");
  EXPECT_TRUE(seen.reusable);
  seen = run(against({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false}));
  EXPECT_EQ(seen.response->body, "ok");
  EXPECT_TRUE(seen.reusable);
  seen = run(against({"HTTP/1.1 200 OK\r\n\r\nuntil the end"}));
  EXPECT_EQ(seen.response->body, "until the end");
  EXPECT_FALSE(seen.reusable);
  seen = run(against({"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"}));
  EXPECT_EQ(seen.response->body, "ok");
  EXPECT_FALSE(seen.reusable);
  seen = run(against({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"}));
  EXPECT_FALSE(seen.reusable);
  seen =
      run(against({"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No "
                   "Content\r\n\r\n",
                   false}));
  EXPECT_EQ(seen.response->head.status, 204);
  EXPECT_FALSE(seen.response->head.headers.contains("link"));
  EXPECT_TRUE(seen.reusable);
  seen = run(against({"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", false}));
  EXPECT_EQ(seen.response->body, "");
  EXPECT_TRUE(seen.reusable);
  seen = run(against({"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", false}, "HEAD"));
  EXPECT_EQ(seen.response->head.headers.get("content-length"), "100");
  EXPECT_TRUE(seen.reusable);
}

TEST(Client, BytesBehindTheAnswerSpoilTheConnection) {
  auto seen = run(against({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n", false}));
  EXPECT_EQ(seen.response->body, "ok");
  EXPECT_FALSE(seen.reusable);
}

TEST(Client, RefusesBadAnswers) {
  struct {
    std::string answer;
    Code code;
  } cases[] = {
      {"", Code::unavailable},
      {"HTTP/1.1 200 OK\r\nConte", Code::unavailable},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", Code::unavailable},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", Code::unavailable},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Code::invalid_argument},
      {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", Code::corrupt},
      {"SSH-2.0-something\r\n\r\n", Code::corrupt},
      {"\x15\x03\x01", Code::corrupt},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", Code::corrupt},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(70000, 'x') + "\r\n\r\n", Code::corrupt},
  };
  for (const auto& c : cases) {
    auto seen = run(against({c.answer}));
    ASSERT_FALSE(seen.response.has_value()) << c.answer.substr(0, 50);
    EXPECT_EQ(seen.response.error().code, c.code) << c.answer.substr(0, 50) << seen.response.error().message;
    EXPECT_FALSE(seen.reusable);
  }
  std::string interim;
  for (int i = 0; i < 20; ++i) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(run(against({interim})).response.error().code, Code::corrupt);
}

Task<> answer_and_die(io::Socket socket) {
  RawPeer peer(std::move(socket));
  std::ignore = co_await peer.read_until("\r\n\r\n");
  co_await peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nmuch");
}
Task<> early_answer() {
  auto executor = co_await io::asio::this_coro::executor;
  auto [ours, theirs] = socket_pair(executor);
  io::TaskGroup group(executor);
  group.spawn(answer_and_die(std::move(theirs)));
  ClientConnection connection(std::move(ours));
  auto answer = co_await fetch(connection, post("/"), std::string(8 << 20, 'x'));
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->head.status, 413);
  EXPECT_EQ(answer->body, "much");
  EXPECT_FALSE(connection.reusable());
  co_await group.close();
}
TEST(Client, AnswerOfAnUpstreamThatStoppedReading) { run(early_answer()); }

}  // namespace
}  // namespace osb::http
