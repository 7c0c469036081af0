#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

#include "http/server_fixture.h"

namespace osb::http {
namespace {

using namespace server_fixture;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Task<> large_length(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  std::string body = sample_bytes(20 << 20);
  co_await peer.send(post("/echo", "Content-Length: " + std::to_string(body.size()) + "\r\n") + body);
  EXPECT_TRUE((co_await peer.read_answer()).second == body);
}
TEST(Server, Echo20MegabytesWithLength) { with_server(large_length); }

Task<> send_all(RawPeer* peer, std::string bytes) { co_await peer->send(std::move(bytes)); }

std::string chunk(std::string_view bytes, size_t piece) {
  std::string out;
  char prefix[32];
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece);
    std::snprintf(prefix, sizeof prefix, "%zx\r\n", part.size());
    out.append(prefix).append(part).append("\r\n");
    bytes.remove_prefix(part.size());
  }
  return out + "0\r\n\r\n";
}

Task<> large_chunked(Server& server, io::Executor executor) {
  for (size_t piece : {size_t{997}, size_t{40000}, size_t{3} << 20}) {
    RawPeer peer = dial(server, executor);
    std::string body = sample_bytes(20 << 20);
    io::TaskGroup group(executor);
    // Both directions stream at once: neither side may wait for the other to finish.
    group.spawn(send_all(&peer, post("/stream", "Transfer-Encoding: chunked\r\n") + chunk(body, piece)));
    std::string head = co_await peer.read_until("\r\n\r\n");
    EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
    EXPECT_THAT(head, HasSubstr("Connection: keep-alive\r\n"));
    std::string got;
    while (true) {
      size_t size = std::stoul(co_await peer.read_until("\r\n"), nullptr, 16);
      got += (co_await peer.read_exactly(size + 2)).substr(0, size);
      if (size == 0) break;
    }
    EXPECT_TRUE(got == body);
    co_await group.close();
    co_await peer.send(get("/hello"));
    EXPECT_EQ((co_await peer.read_answer()).second, "hello");
  }
}
TEST(Server, Echo20MegabytesChunked) { with_server(large_chunked); }

Task<> expectations(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(post("/echo", "Content-Length: 3\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(co_await peer.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  co_await peer.send("abc");
  auto [head, body] = co_await peer.read_answer();
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(body, "abc");
  // The body is here already: nobody waits.
  co_await peer.send(post("/echo", "Content-Length: 3\r\nExpect: 100-continue\r\n") + "abc");
  EXPECT_THAT((co_await peer.read_answer()).first, StartsWith("HTTP/1.1 200 "));
  // Refused without reading: the client must not send it, so the connection ends.
  co_await peer.send(post("/ignore-body", "Content-Length: 3\r\nExpect: 100-continue\r\n"));
  auto [last, text] = co_await peer.read_answer();
  EXPECT_THAT(last, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(last, HasSubstr("Connection: close\r\n"));
  peer.shut_write();
  EXPECT_EQ(co_await peer.read_to_end(), "");
}
TEST(Server, ExpectContinue) { with_server(expectations); }

Task<> unread_bodies(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  std::string body = sample_bytes(100'000);
  co_await peer.send(post("/ignore-body", "Content-Length: 100000\r\n") + body + get("/hello"));
  EXPECT_EQ((co_await peer.read_answer()).second, "ignored");
  EXPECT_EQ((co_await peer.read_answer()).second, "hello");
  co_await peer.send(post("/ignore-body", "Transfer-Encoding: chunked\r\n") + chunk(body, 1000) +
                     get("/hello"));
  EXPECT_EQ((co_await peer.read_answer()).second, "ignored");
  EXPECT_EQ((co_await peer.read_answer()).second, "hello");
  // Too much to drain: said in the answer, which still arrives whole although the client keeps sending.
  io::TaskGroup group(executor);
  group.spawn(send_all(&peer, post("/ignore-body", "Content-Length: 3000000\r\n") + sample_bytes(3'000'000)));
  auto [head, text] = co_await peer.read_answer();
  EXPECT_EQ(text, "ignored");
  EXPECT_THAT(head, HasSubstr("Connection: close\r\n"));
  while (group.size() > 0) co_await io::yield();
  peer.shut_write();
  EXPECT_EQ(co_await peer.read_to_end(), "");
  EXPECT_FALSE(peer.was_reset());
}
TEST(Server, UnreadBodies) { with_server(unread_bodies); }

Task<> refused_bodies(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  // It is here: nothing is lost by keeping the connection.
  co_await peer.send(post("/refuse", "Content-Length: 3\r\n") + "abc" + get("/hello"));
  EXPECT_THAT((co_await peer.read_answer()).first, Not(HasSubstr("Connection: close")));
  EXPECT_EQ((co_await peer.read_answer()).second, "hello");
  co_await peer.send(post("/refuse", "Transfer-Encoding: chunked\r\n") + chunk("abc", 2) + get("/hello"));
  EXPECT_THAT((co_await peer.read_answer()).first, StartsWith("HTTP/1.1 401 "));
  EXPECT_EQ((co_await peer.read_answer()).second, "hello");
  // It is not: the answer comes, and the connection ends although the client goes on as slowly as it can.
  co_await peer.send(post("/refuse", "Content-Length: 100\r\n") + "abc");
  EXPECT_THAT((co_await peer.read_answer()).first, HasSubstr("Connection: close\r\n"));
  auto start = std::chrono::steady_clock::now();
  while (server.connections() > 0 && std::chrono::steady_clock::now() - start < 10s) {
    auto ignored = io::try_write(peer.socket(), std::array<std::string_view, 1>{"x"});
    co_await io::sleep_for(2ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}
TEST(Server, RefusedBodiesAreNotWaitedFor) { with_server(refused_bodies, {.linger = 50ms}); }

Task<> unfinished_bodies(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(post("/ignore-body", "Content-Length: 100\r\n") + "abc");
  EXPECT_EQ((co_await peer.read_answer()).second, "ignored");
  EXPECT_EQ(co_await peer.read_to_end(), "");
}
TEST(Server, UnreadBodiesAreDrainedForAMomentOnly) { with_server(unfinished_bodies, {.linger = 20ms}); }

Task<> dribbling_body(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(post("/echo", "Content-Length: 100000\r\n"));
  auto start = std::chrono::steady_clock::now();
  while (g_log.empty() && std::chrono::steady_clock::now() - start < 10s) {
    auto ignored = io::try_write(peer.socket(), std::array<std::string_view, 1>{"x"});
    co_await io::sleep_for(2ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_THAT(g_log, HasSubstr("too slowly"));
  EXPECT_THAT((co_await peer.read_answer()).first, HasSubstr("Connection: close\r\n"));
}
TEST(Server, SlowBodiesAreCut) { with_server(dribbling_body, {.body_credit = 500ms, .body_rate = 1 << 20}); }

Task<> steady_body(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(post("/echo", "Content-Length: 20000\r\n"));
  for (int i = 0; i < 100; ++i) {  // takes longer than the credit, but earns it back
    co_await peer.send(std::string(200, 'x'));
    co_await io::sleep_for(10ms);
  }
  EXPECT_THAT((co_await peer.read_answer()).first, StartsWith("HTTP/1.1 200 "));
}
TEST(Server, SteadyBodiesAreNot) { with_server(steady_body, {.body_credit = 600ms, .body_rate = 1000}); }

// Nobody reads for longer than the credit lasts: that is not the client's time.
Task<> unread_for_long(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(post("/late-reader", "Content-Length: 4\r\n") + "ab");
  co_await io::sleep_for(610ms);
  co_await peer.send("cd");
  EXPECT_THAT((co_await peer.read_answer()).first, StartsWith("HTTP/1.1 200 "));
}
TEST(Server, TimeInWhichNobodyReadsIsFree) { with_server(unread_for_long, {.body_credit = 500ms}); }

Task<> truncated(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(post("/echo", "Content-Length: 10\r\n") + "abc");
  peer.shut_write();
  EXPECT_THAT(co_await peer.read_to_end(), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(g_log, HasSubstr("ended before the body did"));
}
TEST(Server, TruncatedBodyIsAnError) { with_server(truncated); }

}  // namespace
}  // namespace osb::http
