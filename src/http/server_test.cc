#include "http/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

#include "base/strings.h"
#include "http/test_support.h"

namespace osb::http {
namespace {

using namespace std::chrono_literals;
using io::testing::run;
using testing::dial;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawPeer;
using testing::sample_bytes;
using ::testing::StartsWith;

size_t count_of(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(word, at)) != text.npos; at += word.size()) ++count;
  return count;
}

std::string g_log;    // what handlers note down
bool g_hold = false;  // they wait for

Task<> handle(Request& request, ResponseWriter& response) {
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
Task<> serve(Body body, ServerLimits limits) {
  auto executor = co_await io::asio::this_coro::executor;
  g_log.clear();
  Server server(executor, handle, limits);
  co_await body(server, executor);
  co_await server.close(1s);
  EXPECT_EQ(server.connections(), 0u);
}
void with_server(Body body, ServerLimits limits = {}) { run(serve(body, limits)); }

std::string get(std::string path, std::string fields = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}
std::string post(std::string path, std::string fields) {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

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
TEST(Server, SlowBodiesAreCut) { with_server(dribbling_body, {.body_credit = 80ms, .body_rate = 1 << 20}); }

Task<> steady_body(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(post("/echo", "Content-Length: 20000\r\n"));
  for (int i = 0; i < 100; ++i) {  // takes longer than the credit, but earns it back
    co_await peer.send(std::string(200, 'x'));
    co_await io::sleep_for(2ms);
  }
  EXPECT_THAT((co_await peer.read_answer()).first, StartsWith("HTTP/1.1 200 "));
}
TEST(Server, SteadyBodiesAreNot) { with_server(steady_body, {.body_credit = 150ms, .body_rate = 1000}); }

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

Task<> vanishing_client(Server& server, io::Executor executor) {
  {
    RawPeer peer = dial(server, executor);
    co_await peer.send(get("/endless"));
    std::ignore = co_await peer.read_until("xxx");
  }
  while (server.connections() > 0) co_await io::yield();
  EXPECT_EQ(g_log, "write: unavailable\n");
}
TEST(Server, WriteFailsWhenTheClientIsGone) { with_server(vanishing_client); }

Task<> piped(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  for (int i = 0; i < 2; ++i) {
    co_await peer.send(get("/pipe"));
    EXPECT_EQ((co_await peer.read_answer()).second, sample_bytes(2'400'000));
  }
  co_await peer.send(get("/pipe-chunked"));
  EXPECT_THAT(co_await peer.read_until("0\r\n\r\n"), HasSubstr("200 OK"));
  EXPECT_EQ(g_log, "refused\n");
  g_log.clear();
  RawPeer longer = dial(server, executor);
  co_await longer.send(get("/pipe?more"));
  EXPECT_THAT(co_await longer.read_to_end(), ::testing::EndsWith(sample_bytes(2'400'000)));
  EXPECT_EQ(g_log, "pipe: internal error\n");
}
TEST(Server, MovesABodyOutOfAPipe) { with_server(piped); }

Task<> piped_to_nobody(Server& server, io::Executor executor) {
  {
    RawPeer peer = dial(server, executor);
    co_await peer.send(get("/pipe"));
    std::ignore = co_await peer.read_until("\r\n\r\n");
  }
  while (server.connections() > 0) co_await io::yield();
  EXPECT_EQ(g_log, "pipe: unavailable\n");
}
TEST(Server, APipeFailsWhenTheClientIsGone) {
  ::signal(SIGPIPE, SIG_IGN);
  with_server(piped_to_nobody);
}

Task<> slow_pipe_reader(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(get("/pipe"));
  while (server.connections() > 0) co_await io::sleep_for(1ms);
  EXPECT_EQ(g_log, "pipe: timeout\n");
}
TEST(Server, SlowPipeReaderIsCutAfterAWhile) { with_server(slow_pipe_reader, {.write_timeout = 30ms}); }

Task<> noticed(Server& server, io::Executor executor) {
  {
    RawPeer peer = dial(server, executor);
    co_await peer.send(get("/wait-closed"));
    for (int i = 0; i < 20; ++i) co_await io::yield();
    EXPECT_EQ(g_log, "");
  }
  while (server.connections() > 0) co_await io::yield();
  EXPECT_EQ(g_log, "closed\n");
}
TEST(Server, HandlerCanWaitForTheClientToGo) { with_server(noticed); }

Task<> slow_reader(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(get("/endless"));
  while (server.connections() > 0) co_await io::sleep_for(1ms);
  EXPECT_EQ(g_log, "write: timeout\n");
}
TEST(Server, SlowReaderIsCutAfterAWhile) { with_server(slow_reader, {.write_timeout = 30ms}); }

Task<> silent(Server& server, io::Executor executor) {
  RawPeer idle = dial(server, executor);
  RawPeer half = dial(server, executor);
  RawPeer body = dial(server, executor);
  co_await half.send("GET / HTT");
  co_await body.send(post("/echo", "Content-Length: 10\r\n") + "abc");
  EXPECT_EQ(co_await idle.read_to_end(), "");
  EXPECT_EQ(co_await half.read_to_end(), "");
  EXPECT_THAT(co_await body.read_until("too long"),
              StartsWith("HTTP/1.1 400 "));  // the handler could still answer
  EXPECT_THAT(g_log, HasSubstr("silent for too long"));
}
TEST(Server, SilentClientsAreDropped) {
  with_server(silent, {.head_timeout = 30ms, .idle_timeout = 40ms, .body_timeout = 30ms});
}

Task<> dribbling_head(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  // A byte now and then does not extend the time for the head.
  auto start = std::chrono::steady_clock::now();
  while (!io::peer_closed(peer.socket()) && std::chrono::steady_clock::now() - start < 10s) {
    auto ignored = io::try_write(peer.socket(), std::array<std::string_view, 1>{"A"});
    co_await io::sleep_for(2ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}
TEST(Server, SlowHeadIsCut) { with_server(dribbling_head, {.head_timeout = 40ms}); }

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
