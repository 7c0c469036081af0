#include "http/reverse_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/reverse_proxy_fixture.h"

namespace osb::http {
namespace {

using namespace proxy_fixture;
using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Task<> simple(Proxy& proxy, RawPeer client) {
  for (int i = 0; i < 3; ++i) {
    co_await client.send(get(
        "/a?b",
        "X-One: 1\r\nX-One: 2\r\nConnection: X-Secret\r\nX-Secret: s\r\nKeep-Alive: 5\r\nTE: trailers\r\n"));
    EXPECT_EQ(co_await proxy.upstream->read_until("\r\n\r\n"),
              "GET /a?b HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nX-One: 2\r\n\r\n");
    co_await proxy.upstream->send(
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nConnection: "
        "X-Hop\r\nX-Hop: h\r\n"
        "Keep-Alive: timeout=5\r\nDate: then\r\n\r\nhello");
    auto [head, body] = co_await client.read_answer();
    EXPECT_EQ(head,
              "HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nDate: then\r\nX-Edited: "
              "yes\r\nContent-Length: 5\r\n\r\n");
    EXPECT_EQ(body, "hello");
    co_await proxy.wait_answered(i + 1);
    EXPECT_EQ(proxy.last.outcome, Relay::complete);
    EXPECT_TRUE(proxy.reusable);
  }
}
TEST(ReverseProxy, RelaysAndReuses) { with_proxy(simple); }

Task<> heads(Proxy& proxy, RawPeer client) {
  co_await client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  co_await proxy.upstream->send("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n");
  EXPECT_THAT(co_await client.read_until("\r\n\r\n"), HasSubstr("Content-Length: 1234\r\n"));
  co_await client.send(get("/"));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  co_await proxy.upstream->send("HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n");
  EXPECT_THAT(co_await client.read_until("\r\n\r\n"),
              AllOf(HasSubstr("304"), HasSubstr("ETag"), Not(HasSubstr("Content-Length"))));
  co_await client.send(get("/"));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  co_await proxy.upstream->send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(co_await client.read_until("\r\n\r\n"), HasSubstr("Content-Length: 0\r\n"));
  co_await proxy.wait_answered(3);
  EXPECT_TRUE(proxy.reusable);
}
TEST(ReverseProxy, AnswersWithoutBody) { with_proxy(heads); }

Task<> events(Proxy& proxy, RawPeer client) {
  co_await client.send(get("/events"));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  co_await proxy.upstream->send(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  // Nothing but the head is there: it must come through alone.
  EXPECT_THAT(co_await client.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  for (std::string event : {"one", "twoo", "three"}) {
    char size[8];
    std::snprintf(size, sizeof size, "%zx\r\n", event.size());
    co_await proxy.upstream->send(size + event + "\r\n");
    EXPECT_EQ(co_await client.read_exactly(event.size() + 5), size + event + "\r\n");
  }
  co_await proxy.upstream->send("0\r\n\r\n");
  EXPECT_EQ(co_await client.read_exactly(5), "0\r\n\r\n");
}
TEST(ReverseProxy, EventsAreNotDelayed) { with_proxy(events); }

Task<> until_close(Proxy& proxy, RawPeer client) {
  co_await client.send(get("/"));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  co_await proxy.upstream->send("HTTP/1.0 200 OK\r\n\r\nuntil the end");
  proxy.upstream->close();
  std::string all = co_await client.read_until("0\r\n\r\n");
  EXPECT_THAT(all, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(all, EndsWith("\r\n\r\nd\r\nuntil the end\r\n0\r\n\r\n"));
  co_await proxy.wait_answered(1);
  EXPECT_EQ(proxy.last.outcome, Relay::complete);
  EXPECT_FALSE(proxy.reusable);
}
TEST(ReverseProxy, AnswerThatEndsWithTheConnection) { with_proxy(until_close); }

// Echoes one request body of known length, reading and writing at once.
Task<> echo_length(RawPeer* upstream, size_t length) {
  std::string head = co_await upstream->read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: " + std::to_string(length) + "\r\n"));
  co_await upstream->send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n");
  while (length > 0) {
    std::string piece = co_await upstream->read_exactly(std::min<size_t>(length, 100'000));
    length -= piece.size();
    co_await upstream->send(std::move(piece));
  }
}

Task<> large_length(Proxy& proxy, RawPeer client) {
  std::string body = sample_bytes(20 << 20);
  io::TaskGroup group(proxy.executor);
  group.spawn(echo_length(&*proxy.upstream, body.size()));
  group.spawn(send_all(&client, post("Content-Length: " + std::to_string(body.size()) + "\r\n") + body));
  EXPECT_TRUE((co_await client.read_answer()).second == body);
  co_await proxy.wait_answered(1);
  EXPECT_TRUE(proxy.reusable);
  co_await group.close();
}
TEST(ReverseProxy, Echo20MegabytesWithLength) { with_proxy(large_length); }

// Copies chunks verbatim.
Task<> echo_chunked(RawPeer* upstream) {
  std::string head = co_await upstream->read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  co_await upstream->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  while (true) {
    std::string prefix = co_await upstream->read_until("\r\n");
    size_t size = std::stoul(prefix, nullptr, 16);
    co_await upstream->send(prefix + co_await upstream->read_exactly(size + 2));
    if (size == 0) co_return;
  }
}
Task<> large_chunked(Proxy& proxy, RawPeer client) {
  std::string body = sample_bytes(20 << 20), sent, got;
  char prefix[32];
  for (size_t at = 0; at < body.size();) {
    size_t size = std::min<size_t>(body.size() - at, 1 + (at * 7919) % 70'000);
    std::snprintf(prefix, sizeof prefix, "%zx\r\n", size);
    sent.append(prefix).append(body, at, size).append("\r\n");
    at += size;
  }
  io::TaskGroup group(proxy.executor);
  group.spawn(echo_chunked(&*proxy.upstream));
  group.spawn(send_all(&client, post("Transfer-Encoding: chunked\r\n") + sent + "0\r\n\r\n"));
  std::ignore = co_await client.read_until("\r\n\r\n");
  while (true) {
    size_t size = std::stoul(co_await client.read_until("\r\n"), nullptr, 16);
    got += (co_await client.read_exactly(size + 2)).substr(0, size);
    if (size == 0) break;
  }
  EXPECT_TRUE(got == body);
  co_await proxy.wait_answered(1);
  EXPECT_TRUE(proxy.reusable);
  co_await group.close();
}
TEST(ReverseProxy, Echo20MegabytesChunked) { with_proxy(large_chunked); }

Task<> small_body(Proxy& proxy, RawPeer client) {
  co_await client.send(post("Content-Length: 6\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(co_await client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  co_await client.send("abc");
  co_await client.send("def");
  EXPECT_EQ(co_await proxy.upstream->read_until("def"),
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabcdef");
  co_await proxy.upstream->send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT((co_await client.read_answer()).first, StartsWith("HTTP/1.1 201 Created\r\n"));
}
TEST(ReverseProxy, SmallBodyAfterContinue) { with_proxy(small_body); }

Task<> slow_upload(Proxy& proxy, RawPeer client) {
  co_await client.send(post("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(co_await proxy.upstream->read_until("\r\n\r\n"),
              HasSubstr("chunked"));  // before any of the body
  co_await client.send("1\r\na\r\n");
  EXPECT_EQ(co_await proxy.upstream->read_exactly(6), "1\r\na\r\n");  // piece by piece
  // The answer starts while the body is still under way, and reaches the client.
  co_await proxy.upstream->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
  EXPECT_THAT(co_await client.read_until("2\r\nhi\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  co_await client.send("1\r\nb\r\n0\r\n\r\n");
  EXPECT_EQ(co_await proxy.upstream->read_exactly(11), "1\r\nb\r\n0\r\n\r\n");
  co_await proxy.upstream->send("0\r\n\r\n");
  EXPECT_EQ(co_await client.read_exactly(5), "0\r\n\r\n");
  co_await proxy.wait_answered(1);
  EXPECT_TRUE(proxy.reusable);
}
TEST(ReverseProxy, AnswerBeforeTheBodyEnds) { with_proxy(slow_upload); }

Task<> early_death(Proxy& proxy, RawPeer client) {
  io::TaskGroup group(proxy.executor);
  group.spawn(send_all(&client, post("Content-Length: 3000000\r\n") + std::string(3'000'000, 'x')));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  co_await proxy.upstream->send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nmuch");
  proxy.upstream->close();
  auto [head, body] = co_await client.read_answer();
  EXPECT_THAT(head, StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(body, "much");
  co_await proxy.wait_answered(1);
  EXPECT_EQ(proxy.last.outcome, Relay::complete);
  EXPECT_FALSE(proxy.reusable);
  while (group.size() > 0) co_await io::yield();
  EXPECT_FALSE(client.was_reset());
}
TEST(ReverseProxy, AnswerOfAnUpstreamThatDiedEarly) { with_proxy(early_death); }

Task<> early_answer(Proxy& proxy, RawPeer client) {
  co_await client.send(post("Content-Length: 100000\r\n") + std::string(50'000, 'x'));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  co_await proxy.upstream->send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  EXPECT_EQ((co_await client.read_answer()).second, "no");  // although 50000 bytes never came
  co_await proxy.wait_answered(1);
  EXPECT_EQ(proxy.last.outcome, Relay::complete);
  EXPECT_FALSE(proxy.reusable);
  // What is left of the body is drained, and the client's connection goes on.
  proxy.drop = true;
  proxy.connection.reset();
  auto [ours, theirs] = socket_pair(proxy.executor);
  proxy.connection.emplace(std::move(ours));
  RawPeer second(std::move(theirs));
  co_await client.send(std::string(50'000, 'x') + get("/next"));
  EXPECT_THAT(co_await second.read_until("\r\n\r\n"), StartsWith("GET /next "));
  co_await second.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ((co_await client.read_answer()).second, "ok");
}
TEST(ReverseProxy, AnswerWithoutTheWholeBody) { with_proxy(early_answer); }

Task<> dead(Proxy& proxy, RawPeer client) {
  co_await client.send(get("/"));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  proxy.upstream->close();
  EXPECT_THAT((co_await client.read_answer()).first, StartsWith("HTTP/1.1 502 "));
  EXPECT_EQ(proxy.last.outcome, Relay::not_answered);
  EXPECT_EQ(proxy.last.error.code, Code::unavailable);
  EXPECT_TRUE(proxy.last.request_sent);
}
TEST(ReverseProxy, UpstreamDiesWithoutAnswer) { with_proxy(dead); }

Task<> dead_before(Proxy& proxy, RawPeer client) {
  proxy.upstream->close();
  co_await client.send(get("/"));
  EXPECT_THAT((co_await client.read_answer()).first, StartsWith("HTTP/1.1 502 "));
  EXPECT_EQ(proxy.last.outcome, Relay::not_answered);
  EXPECT_FALSE(proxy.last.request_sent);  // a retry is safe
}
TEST(ReverseProxy, UpstreamIsGoneBeforeTheRequest) { with_proxy(dead_before); }

Task<> repeated(Proxy& proxy, RawPeer client) {
  proxy.upstream->close();
  auto [ours, theirs] = socket_pair(proxy.executor);
  proxy.spare.emplace(std::move(ours));
  RawPeer second(std::move(theirs));
  co_await client.send(post("Content-Length: 5\r\n") + "hello");
  EXPECT_THAT(co_await second.read_until("hello"), StartsWith("POST / HTTP/1.1\r\n"));
  co_await second.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ((co_await client.read_answer()).second, "ok");
  // What comes next on the client's connection is not mixed up with what was put back.
  co_await proxy.wait_answered(1);
  proxy.connection = std::move(proxy.spare);
  proxy.spare.reset();
  co_await client.send(post("Content-Length: 3\r\n") + "abc");
  EXPECT_THAT(co_await second.read_until("abc"), StartsWith("POST / HTTP/1.1\r\n"));
  co_await second.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT((co_await client.read_answer()).first, StartsWith("HTTP/1.1 200 "));
}
TEST(ReverseProxy, ARepeatHasTheWholeBody) { with_proxy(repeated); }

Task<> slow_client(Proxy& proxy, RawPeer client) {
  co_await client.send(post("Content-Length: 5\r\n") + "he");
  EXPECT_THAT((co_await client.read_answer()).first, StartsWith("HTTP/1.1 502 "));
  EXPECT_TRUE(proxy.last.client_slow);
  EXPECT_TRUE(proxy.last.request_sent);  // what was read of the body is gone
}
// The same where bytes are moved and not read.
Task<> slow_large_client(Proxy& proxy, RawPeer client) {
  co_await client.send(post("Content-Length: 2000000\r\n"));
  co_await client.send(std::string(100, 'x'));
  EXPECT_THAT((co_await client.read_answer()).first, StartsWith("HTTP/1.1 502 "));
  EXPECT_TRUE(proxy.last.client_slow);
}
TEST(ReverseProxy, SlowLargeBodyIsTheClientsFault) { with_proxy(slow_large_client, {.body_credit = 40ms}); }

Task<> cut_large_client(Proxy& proxy, RawPeer client) {
  io::TaskGroup group(proxy.executor);
  group.spawn(send_all(&client, post("Content-Length: 2000000\r\n") + std::string(1'500'000, 'x')));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  EXPECT_EQ((co_await proxy.upstream->read_exactly(1'500'000)).size(), 1'500'000u);
  while (group.size() > 0) co_await io::yield();
  client.close();
  co_await proxy.wait_answered(1);
  EXPECT_NE(proxy.last.outcome, Relay::complete);
  EXPECT_FALSE(proxy.reusable);
}
TEST(ReverseProxy, CutLargeBodyIsNotRelayedAsAWhole) { with_proxy(cut_large_client); }

TEST(ReverseProxy, SlowBodyIsTheClientsFault) { with_proxy(slow_client, {.body_credit = 40ms}); }

// A body without a length may be a conversation: only silence ends it.
Task<> conversation(Proxy& proxy, RawPeer client) {
  co_await client.send(post("Transfer-Encoding: chunked\r\n"));
  for (int i = 0; i < 20; ++i) {
    co_await client.send("1\r\nx\r\n");
    std::ignore = co_await proxy.upstream->read_until("1\r\nx\r\n");
    co_await io::sleep_for(5ms);
  }
  co_await client.send("0\r\n\r\n");
  std::ignore = co_await proxy.upstream->read_until("0\r\n\r\n");
  co_await proxy.upstream->send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT((co_await client.read_answer()).first, StartsWith("HTTP/1.1 200 "));
}
TEST(ReverseProxy, AStreamMayBeSlow) { with_proxy(conversation, {.body_credit = 40ms}); }

Task<> garbage(Proxy& proxy, RawPeer client) {
  co_await client.send(get("/"));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  co_await proxy.upstream->send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab");
  auto [head, body] = co_await client.read_answer();
  EXPECT_THAT(head, StartsWith("HTTP/1.1 502 "));
  EXPECT_THAT(body, HasSubstr("Content-Length is repeated"));
  EXPECT_EQ(proxy.last.error.code, Code::corrupt);
}
TEST(ReverseProxy, GarbageIsNotRelayed) { with_proxy(garbage); }

Task<> injection(Proxy& proxy, RawPeer client) {
  co_await client.send(get("/"));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  // A second answer behind the first must not reach anybody.
  co_await proxy.upstream->send(
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
  EXPECT_EQ((co_await client.read_answer()).second, "ok");
  co_await proxy.wait_answered(1);
  EXPECT_FALSE(proxy.reusable);
}
TEST(ReverseProxy, SecondAnswerIsNotRelayed) { with_proxy(injection); }

Task<> cut(Proxy& proxy, RawPeer client) {
  co_await client.send(get("/"));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  co_await proxy.upstream->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  proxy.upstream->close();
  std::string all = co_await client.read_to_end();
  EXPECT_THAT(all, EndsWith("3\r\nabc\r\n"));  // and no last chunk
  EXPECT_EQ(proxy.last.outcome, Relay::cut);
}
TEST(ReverseProxy, CutAnswerStaysCut) { with_proxy(cut); }

Task<> bad_body(Proxy& proxy, RawPeer client) {
  co_await client.send(post("Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\nnonsense\r\n");
  auto [head, body] = co_await client.read_answer();
  EXPECT_THAT(head, AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("Connection: close\r\n")));
  EXPECT_EQ(proxy.last.outcome, Relay::not_answered);
  EXPECT_EQ(proxy.last.error.code, Code::invalid_argument);
  proxy.connection.reset();
  std::string seen = co_await proxy.upstream->read_to_end();
  EXPECT_THAT(seen, Not(EndsWith("0\r\n\r\n")));  // the upstream never sees a complete body
}
TEST(ReverseProxy, MalformedBodyIsTheClientsFault) { with_proxy(bad_body); }

Task<> late_head(Proxy& proxy, RawPeer client) {
  proxy.head_timeout = 20ms;
  co_await client.send(get("/"));
  auto [head, body] = co_await client.read_answer();
  EXPECT_THAT(body, HasSubstr("no answer within 20 ms"));
  EXPECT_EQ(proxy.last.error.code, Code::timeout);
  EXPECT_FALSE(proxy.reusable);
}
TEST(ReverseProxy, HeadTimeout) { with_proxy(late_head); }

// The upstream is stopped for longer than the limit, goes on, and answers.
Task<> stopped_upstream(Proxy& proxy, RawPeer client) {
  proxy.head_timeout = 20ms;
  proxy.stopped = 0s;
  co_await client.send(get("/"));
  co_await proxy.upstream->read_until("\r\n\r\n");
  for (int i = 0; i < 20; ++i) {
    *proxy.stopped += 5ms;
    co_await io::sleep_for(5ms);
  }
  EXPECT_EQ(proxy.answered, 0);
  co_await proxy.upstream->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  auto [head, body] = co_await client.read_answer();
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 "));
}
TEST(ReverseProxy, NoTimeoutWhileTheUpstreamIsStopped) { with_proxy(stopped_upstream); }

Task<> stopped_too_short(Proxy& proxy, RawPeer client) {
  proxy.head_timeout = 20ms;
  proxy.stopped = 5s;  // all of it before the request
  co_await client.send(get("/"));
  auto [head, body] = co_await client.read_answer();
  EXPECT_EQ(proxy.last.error.code, Code::timeout);
}
TEST(ReverseProxy, EarlierStopsProlongNothing) { with_proxy(stopped_too_short); }

Task<> slow_stream(Proxy& proxy, RawPeer client) {
  proxy.head_timeout = 20ms;  // does not count once the head is here
  co_await client.send(get("/"));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  co_await proxy.upstream->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
  co_await io::sleep_for(40ms);
  co_await proxy.upstream->send("ok");
  EXPECT_EQ((co_await client.read_answer()).second, "ok");
}
TEST(ReverseProxy, HeadTimeoutEndsWithTheHead) { with_proxy(slow_stream); }

Task<> gone(Proxy& proxy, RawPeer client) {
  co_await client.send(get("/"));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  proxy.drop = true;
  client.close();
  EXPECT_EQ(co_await proxy.upstream->read_to_end(),
            "");  // the upstream learns of it although nothing was written
  EXPECT_EQ(proxy.last.error.message, "the client has gone");
}
TEST(ReverseProxy, ClientGoneEndsTheExchange) { with_proxy(gone, {.body_timeout = 40ms}); }

TEST(StripHopByHop, RemovesNamedAndKnown) {
  Headers headers{{"Connection", "close, X-A"},
                  {"connection", " X-B ,"},
                  {"X-A", "1"},
                  {"x-b", "2"},
                  {"X-C", "3"},
                  {"Proxy-Connection", "x"},
                  {"TE", "t"},
                  {"Upgrade", "u"},
                  {"Trailer", "t"},
                  {"Transfer-Encoding", "c"},
                  {"Keep-Alive", "k"},
                  {"Proxy-Authorization", "p"}};
  strip_hop_by_hop(headers);
  ASSERT_EQ(headers.size(), 1u);
  EXPECT_EQ(headers.get("x-c"), "3");
}

}  // namespace
}  // namespace osb::http
