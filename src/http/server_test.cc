#include "http/server.h"

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

Task<> simple(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  for (int i = 0; i < 3; ++i) {  // the connection is kept
    co_await peer.send(get("/hello"));
    auto [head, body] = co_await peer.read_answer();
    EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_EQ(body, "hello");
    EXPECT_EQ(count_of(head, "Date: "), 1u);
    EXPECT_EQ(count_of(head, "Content-Length: 5\r\n"), 1u);
    EXPECT_THAT(head, Not(HasSubstr("Connection:")));
  }
  EXPECT_EQ(server.connections(), 1u);
}
TEST(Server, AnswersAndKeepsTheConnection) { with_server(simple); }

Task<> pipelined(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(get("/hello") + post("/echo", "Content-Length: 3\r\n") + "abc" +
                     post("/echo", "Transfer-Encoding: chunked\r\n") + "2\r\nde\r\n1\r\nf\r\n0\r\n\r\n" +
                     get("/hello"));
  EXPECT_EQ((co_await peer.read_answer()).second, "hello");
  EXPECT_EQ((co_await peer.read_answer()).second, "abc");
  EXPECT_EQ((co_await peer.read_answer()).second, "def");
  EXPECT_EQ((co_await peer.read_answer()).second, "hello");
  std::string many;
  for (int i = 0; i < 500; ++i) many += get("/hello");
  co_await peer.send(many);
  for (int i = 0; i < 500; ++i) EXPECT_EQ((co_await peer.read_answer()).second, "hello");
}
TEST(Server, PipelinedRequests) { with_server(pipelined); }

Task<> byte_by_byte(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  std::string bytes = post("/echo", "Transfer-Encoding: chunked\r\n") +
                      "2\r\nde\r\n1;x=y\r\nf\r\n0\r\nT: u\r\n\r\n" + get("/hello");
  for (char c : bytes) {
    co_await peer.send(std::string(1, c));
    co_await io::yield();
  }
  EXPECT_EQ((co_await peer.read_answer()).second, "def");
  EXPECT_EQ((co_await peer.read_answer()).second, "hello");
}
TEST(Server, SlowPieces) { with_server(byte_by_byte); }

Task<> refused(Server& server, io::Executor executor) {
  struct {
    std::string bytes, status;
  } cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", "400"},
      {"GET / HTTP/1.1\nHost: a\n\n", "400"},
      {"\x16\x03\x01\x02", "400"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
      {post("/echo", "Transfer-Encoding: xchunked\r\n"), "501"},
      {post("/echo", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n") + "0\r\n\r\n", "400"},
      {"GET /" + std::string(17000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", "414"},
      {"GET /" + std::string(70000, 'a'), "414"},
      {get("/hello", "X: " + std::string(70000, 'a') + "\r\n"), "431"},
  };
  for (const auto& c : cases) {
    RawPeer peer = dial(server, executor);
    co_await peer.send(c.bytes);
    auto [head, body] = co_await peer.read_answer();
    EXPECT_THAT(head, StartsWith("HTTP/1.1 " + c.status + " ")) << c.bytes.substr(0, 60);
    EXPECT_THAT(head, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(head, HasSubstr("Content-Type: application/json\r\n"));
    EXPECT_THAT(body, StartsWith(R"({"code":"HTTP::BAD_REQUEST","message":")"));
    peer.shut_write();
    EXPECT_EQ(co_await peer.read_to_end(), "");
    EXPECT_FALSE(peer.was_reset());
  }
}
TEST(Server, RefusesBadHeads) { with_server(refused); }

Task<> smuggled(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  // What follows a refused head is never read as a request.
  co_await peer.send(post("/echo", "Content-Length: 3\r\nContent-Length: 0\r\n") + get("/hello"));
  auto [head, body] = co_await peer.read_answer();
  EXPECT_THAT(head, StartsWith("HTTP/1.1 400 "));
  peer.shut_write();
  EXPECT_EQ(co_await peer.read_to_end(), "");
  // Nor is what follows a broken chunk.
  RawPeer second = dial(server, executor);
  co_await second.send(post("/echo", "Transfer-Encoding: chunked\r\n") + "5\r\nhello!\r\n0\r\n\r\n" +
                       get("/hello"));
  second.shut_write();
  std::string all = co_await second.read_to_end();
  EXPECT_EQ(count_of(all, "HTTP/1.1 "), 1u);
  EXPECT_THAT(all, AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("Connection: close\r\n")));
  EXPECT_THAT(g_log, HasSubstr("a chunk is longer than its size"));
}
TEST(Server, NothingIsReadBehindAnError) { with_server(smuggled); }

Task<> closes(Server& server, io::Executor executor) {
  {
    RawPeer peer = dial(server, executor);
    co_await peer.send(get("/hello", "Connection: close\r\n"));
    std::string all = co_await peer.read_to_end();
    EXPECT_THAT(all, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(all, ::testing::EndsWith("\r\n\r\nhello"));
  }
  {
    RawPeer peer = dial(server, executor);
    co_await peer.send("GET /hello HTTP/1.0\r\n\r\n");
    EXPECT_THAT(co_await peer.read_to_end(), HasSubstr("Connection: close\r\n"));
  }
  {
    RawPeer peer = dial(server, executor);  // no chunks for HTTP/1.0
    co_await peer.send("POST /stream HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc");
    std::string all = co_await peer.read_to_end();
    EXPECT_THAT(all, Not(HasSubstr("chunked")));
    EXPECT_THAT(all, ::testing::EndsWith("\r\n\r\nabc"));
  }
}
TEST(Server, ConnectionCloseAndOldClients) { with_server(closes); }

Task<> head_requests(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send("HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n" + get("/empty") +
                     "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n" + "HEAD /sized HTTP/1.1\r\nHost: a\r\n\r\n" +
                     get("/sized"));
  std::string head = co_await peer.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 5\r\n"));
  head = co_await peer.read_until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 204 No Content\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Content-Length")));
  head = co_await peer.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  head = co_await peer.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 10\r\n"));
  EXPECT_EQ((co_await peer.read_answer()).second, "0123456789");
}
TEST(Server, HeadAndNoContentHaveNoBody) { with_server(head_requests); }

Task<> fields(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(get("/fields"));
  auto [head, body] = co_await peer.read_answer();
  EXPECT_THAT(head, HasSubstr("X-Always: 1\r\n"));
  EXPECT_THAT(head, HasSubstr("X-Both: own\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("X-Both: always")));
  EXPECT_THAT(head, HasSubstr("Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n"));
  EXPECT_THAT(head, HasSubstr("Date: then\r\n"));
  EXPECT_EQ(count_of(head, "Date: "), 1u);
  EXPECT_EQ(count_of(head, "Content-Length: "), 1u);
  EXPECT_EQ(body, "ok");
  co_await peer.send(get("/split"));
  auto [refused, text] = co_await peer.read_answer();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(refused, Not(HasSubstr("Set-Cookie")));
  EXPECT_EQ(g_log, "refused\n");
}
TEST(Server, Fields) { with_server(fields); }

Task<> careless(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(get("/forgets") + get("/throws") + get("/twice") + get("/nothing-here"));
  auto [forgot, said] = co_await peer.read_answer();
  EXPECT_THAT(forgot, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(said, HasSubstr("\"HTTP::NO_ANSWER\""));
  EXPECT_THAT(forgot, HasSubstr("X-Request-ID: r1\r\n"));
  EXPECT_THAT((co_await peer.read_answer()).first, StartsWith("HTTP/1.1 500 "));
  EXPECT_EQ((co_await peer.read_answer()).second, "first");
  EXPECT_THAT((co_await peer.read_answer()).first, StartsWith("HTTP/1.1 404 "));
  EXPECT_EQ(g_log, "refused\n");
}
TEST(Server, CarelessHandlersStillAnswer) { with_server(careless); }

Task<> cut_streams(Server& server, io::Executor executor) {
  RawPeer half = dial(server, executor);
  co_await half.send(get("/half"));
  EXPECT_THAT(co_await half.read_to_end(), ::testing::EndsWith("4\r\nhalf\r\n"));
  RawPeer longer = dial(server, executor);
  co_await longer.send(get("/too-long"));
  EXPECT_EQ(co_await longer.read_to_end(), "");
  RawPeer shorter = dial(server, executor);
  co_await shorter.send(get("/too-short"));
  EXPECT_THAT(co_await shorter.read_to_end(), ::testing::EndsWith("Content-Length: 9\r\n\r\n01234"));
  EXPECT_EQ(g_log, "refused\nrefused\n");
}
TEST(Server, IncompleteAnswersNeverLookComplete) { with_server(cut_streams); }

// TCP, since only there is a reset visible.
Task<> old_client_sees_reset(Server& server, io::Executor executor) {
  auto listener = io::listen_tcp("127.0.0.1", 0, 8);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &size);
  io::TaskGroup group(executor);
  group.spawn(server.serve(std::move(*listener)));
  auto socket = co_await io::connect_tcp("127.0.0.1", ntohs(address.sin_port));
  EXPECT_TRUE(socket.has_value());
  RawPeer peer(std::move(*socket));
  co_await peer.send("GET /half HTTP/1.0\r\n\r\n");
  std::ignore = co_await peer.read_to_end();
  EXPECT_TRUE(peer.was_reset());
  co_await server.close(1s);
  while (group.size() > 0) co_await io::yield();  // serve() has returned by itself
}
TEST(Server, CutStreamWithoutFramingIsReset) { with_server(old_client_sees_reset); }

Task<> upgraded(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(get("/upgrade", "Connection: Upgrade\r\nUpgrade: test\r\n") + "early");
  std::string head = co_await peer.read_until("\r\n\r\n");
  EXPECT_THAT(head,
              StartsWith("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(head, Not(HasSubstr("chunked")));
  EXPECT_EQ(co_await peer.read_to_end(), "<early>");
}
TEST(Server, TakeOver) { with_server(upgraded); }

Task<> crowded(Server& server, io::Executor executor) {
  auto listener = io::listen_tcp("127.0.0.1", 0, 8);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &size);
  io::TaskGroup group(executor);
  group.spawn(server.serve(std::move(*listener)));
  std::vector<RawPeer> peers;
  for (int i = 0; i < 6; ++i) {
    auto socket = co_await io::connect_tcp("127.0.0.1", ntohs(address.sin_port));
    peers.emplace_back(std::move(*socket));
    co_await peers.back().send(get("/hello"));
    EXPECT_EQ((co_await peers.back().read_answer()).second, "hello");
    EXPECT_LE(server.connections(), 3u);
  }
  EXPECT_EQ(co_await peers[0].read_to_end(), "");  // the oldest idle ones made room
  co_await server.close(1s);
  co_await group.close();
}
TEST(Server, IdleConnectionsMakeRoom) { with_server(crowded, {.max_connections = 3}); }

// Connections that were answered make room first, then those that have waited for longest for a request or
// the rest of one; never one that waits for its answer.
Task<> crowded_by_strangers(Server& server, io::Executor executor) {
  auto listener = io::listen_tcp("127.0.0.1", 0, 8);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &size);
  io::TaskGroup group(executor);
  group.spawn(server.serve(std::move(*listener)));
  std::vector<RawPeer> peers;
  for (std::string first :
       {get("/gone"), std::string("GET / HTT"), get("/hello"), post("/refuse", "Content-Length: 9\r\n"),
        get("/hello"), get("/hello"), get("/hello"), std::string("GET / HTT"), std::string("GET / HTT"),
        std::string("GET / HTT"), get("/hello")}) {
    auto socket = co_await io::connect_tcp("127.0.0.1", ntohs(address.sin_port));
    peers.emplace_back(std::move(*socket));
    bool answered = !first.starts_with("GET / HTT") && !first.starts_with("GET /gone");
    co_await peers.back().send(std::move(first));
    if (answered) EXPECT_THAT((co_await peers.back().read_answer()).first, StartsWith("HTTP/1.1 "));
    co_await io::sleep_for(5ms);
    EXPECT_LE(server.connections(), 4u);
    // The refused one left before the half head, and that before the idle one, which is younger.
    if (peers.size() == 5) {
      EXPECT_EQ(co_await peers[3].read_to_end(), "");
      EXPECT_FALSE(io::peer_closed(peers[1].socket()));
    }
    if (peers.size() == 6) {
      EXPECT_EQ(co_await peers[1].read_to_end(), "");
      EXPECT_FALSE(io::peer_closed(peers[2].socket()));
    }
  }
  EXPECT_EQ(co_await peers[2].read_to_end(), "");
  g_hold = false;
  EXPECT_EQ((co_await peers[0].read_answer()).second, "made");
  co_await server.close(1s);
  co_await group.close();
}
TEST(Server, WhoIsMissedLeastMakesRoom) {
  g_hold = true;
  with_server(crowded_by_strangers, {.linger = 10s, .max_connections = 4});
}

// TCP: there a closed connection and a half-closed one look the same.
Task<> absent(Server& server, io::Executor executor) {
  auto listener = io::listen_tcp("127.0.0.1", 0, 8);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &size);
  io::TaskGroup group(executor);
  group.spawn(server.serve(std::move(*listener)));
  const std::string modern = post("/gone", "Content-Length: 0\r\n");
  const std::string old = "POST /gone HTTP/1.0\r\nContent-Length: 0\r\n\r\n";
  enum class End { stays, half, closes };
  struct {
    std::string request;
    End end;
    std::string log;
  } cases[] = {{modern, End::stays, "there\n"}, {modern, End::half, "there\n"},
               {modern, End::closes, "gone\n"}, {old, End::stays, "there\n"},
               {old, End::closes, "gone\n"},    {old, End::half, "gone\n"}};
  for (auto& c : cases) {
    g_log.clear();
    g_hold = true;
    auto socket = co_await io::connect_tcp("127.0.0.1", ntohs(address.sin_port));
    RawPeer peer(std::move(*socket));
    co_await peer.send(c.request);
    if (c.end == End::half) peer.shut_write();
    if (c.end == End::closes) peer.close();
    g_hold = false;
    while (g_log.empty()) co_await io::sleep_for(1ms);
    EXPECT_EQ(g_log, c.log) << c.request;
    if (c.end != End::closes) EXPECT_THAT(co_await peer.read_until("made"), HasSubstr(" 200 OK"));
  }
  co_await server.close(1s);
  co_await group.close();
}
TEST(Server, WhetherTheClientIsGone) { with_server(absent); }

Task<> closing(Server& server, io::Executor executor) {
  RawPeer idle = dial(server, executor), busy = dial(server, executor), stuck = dial(server, executor);
  co_await busy.send(post("/echo", "Content-Length: 3\r\n") + "a");
  co_await stuck.send(get("/wait"));
  for (int i = 0; i < 20; ++i) co_await io::yield();
  io::TaskGroup group(executor);
  group.spawn(server.close(50ms));
  EXPECT_EQ(co_await idle.read_to_end(), "");  // at once
  co_await busy.send("bc");
  auto [head, body] = co_await busy.read_answer();  // is let finish
  EXPECT_EQ(body, "abc");
  EXPECT_THAT(head, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(co_await stuck.read_to_end(), "");  // is cut
  while (group.size() > 0) co_await io::yield();
}
TEST(Server, CloseLetsRequestsFinish) { with_server(closing); }

}  // namespace
}  // namespace osb::http
