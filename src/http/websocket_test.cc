#include "http/websocket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/test_support.h"

namespace osb::http {
namespace {

using namespace std::chrono_literals;
using io::testing::run;
using testing::dial;
using ::testing::HasSubstr;
using testing::RawPeer;
using testing::sample_bytes;
using testing::socket_pair;
using ::testing::StartsWith;

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (int v : values) out.push_back(static_cast<char>(v));
  return out;
}

TEST(WebSocketKey, Handshake) {
  EXPECT_EQ(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_TRUE(is_websocket_key("dGhlIHNhbXBsZSBub25jZQ=="));
  EXPECT_TRUE(is_websocket_key(new_websocket_key()));
  EXPECT_NE(new_websocket_key(), new_websocket_key());
  for (std::string_view bad :
       {"", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ===", "dGhlIHNhbXBsZSBub25jZR==",
        "dGhlIHNhbXBsZSBub25j*Q==", "dGhlIHNhbXBsZSBub25jZQAA", "QUJD"}) {
    EXPECT_FALSE(is_websocket_key(bad)) << bad;
  }
}

TEST(WebSocketFrame, ParsesWhatItComposes) {
  for (uint64_t length : {0ull, 1ull, 125ull, 126ull, 65535ull, 65536ull, 1ull << 40}) {
    for (bool masked : {false, true}) {
      FrameHead head{.final = length % 2 == 0, .opcode = Opcode::text, .mask = {}, .length = length};
      if (masked) head.mask = {1, 2, 3, 4};
      std::string out;
      append_frame_head(out, head);
      Role us = masked ? Role::server : Role::client;
      for (size_t n = 0; n < out.size(); ++n)
        EXPECT_EQ(parse_frame_head(out.substr(0, n), us).value(), std::nullopt);
      auto parsed = parse_frame_head(out + "more", us).value();
      ASSERT_TRUE(parsed.has_value());
      EXPECT_EQ(parsed->length, length);
      EXPECT_EQ(parsed->final, head.final);
      EXPECT_EQ(parsed->opcode, Opcode::text);
      EXPECT_EQ(parsed->mask, head.mask);
      EXPECT_EQ(parsed->size, out.size());
    }
  }
}

TEST(WebSocketFrame, Rejects) {
  struct {
    const char* why;
    std::string head;
  } cases[] = {
      {"RSV1", bytes({0xc1, 0x80, 0, 0, 0, 0})},
      {"RSV2", bytes({0xa1, 0x80, 0, 0, 0, 0})},
      {"RSV3", bytes({0x91, 0x80, 0, 0, 0, 0})},
      {"opcode 3", bytes({0x83, 0x80, 0, 0, 0, 0})},
      {"opcode 7", bytes({0x87, 0x80, 0, 0, 0, 0})},
      {"opcode 11", bytes({0x8b, 0x80, 0, 0, 0, 0})},
      {"not masked", bytes({0x81, 0x00})},
      {"fragmented ping", bytes({0x09, 0x80, 0, 0, 0, 0})},
      {"long ping", bytes({0x89, 0xfe, 0, 126, 0, 0, 0, 0})},
      {"long close", bytes({0x88, 0xff})},
      {"16-bit length of 125", bytes({0x82, 0xfe, 0, 125, 0, 0, 0, 0})},
      {"64-bit length of 65535", bytes({0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0})},
      {"64-bit length with the top bit", bytes({0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})},
  };
  for (const auto& c : cases) {
    auto parsed = parse_frame_head(c.head, Role::server);
    EXPECT_FALSE(parsed.has_value()) << c.why;
  }
  EXPECT_FALSE(parse_frame_head(bytes({0x81, 0x80}), Role::client).has_value());  // masked by a server
}

TEST(WebSocketFrame, CloseReasons) {
  EXPECT_EQ(parse_close("")->code, 1005);
  EXPECT_EQ(parse_close(bytes({0x03, 0xe8}) + "bye")->text, "bye");
  EXPECT_EQ(parse_close(bytes({0x0f, 0xa1}))->code, 4001);
  for (const auto& bad : {bytes({3}), bytes({0, 0}), bytes({0x03, 0xe7}), bytes({0x03, 0xec}),
                          bytes({0x03, 0xed}), bytes({0x03, 0xee}), bytes({0x07, 0xd0}), bytes({0x13, 0x88}),
                          bytes({0xff, 0xff}), bytes({0x03, 0xe8, 0xff})}) {
    EXPECT_FALSE(parse_close(bad).has_value());
  }
}

std::string g_log;

Task<> echo(Request& request, ResponseWriter& response) {
  auto socket = co_await accept_websocket(request, response, {.message_bytes = 1 << 20, .silence = 200ms});
  if (!socket) {
    g_log += "refused\n";
    co_return;
  }
  while (true) {
    auto message = co_await socket->read();
    if (!message) {
      g_log += message.error().message + "\n";
      co_return;
    }
    if (!*message) {
      g_log +=
          "closed " + std::to_string(socket->close_reason().code) + " " + socket->close_reason().text + "\n";
      co_return;
    }
    if ((*message)->data == "close me") {
      std::ignore = co_await socket->close(4001, "TAKEN_OVER");
      continue;
    }
    auto sent = (*message)->text ? co_await socket->send_text((*message)->data)
                                 : co_await socket->send_binary("<", (*message)->data);
    EXPECT_TRUE(sent.has_value());
  }
}

using Body = Task<> (*)(Server&, io::Executor);
Task<> serve(Body body) {
  auto executor = co_await io::asio::this_coro::executor;
  g_log.clear();
  Server server(executor, echo);
  co_await body(server, executor);
  co_await server.close(1s);
}
void with_server(Body body) { run(serve(body)); }

std::string handshake(std::string fields) { return "GET /ws HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"; }
const std::string kGood =
    "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
    "13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

std::string masked(int first, std::string_view payload) {
  std::string out;
  FrameHead head{.final = (first & 0x80) != 0,
                 .opcode = static_cast<Opcode>(first & 15),
                 .mask = {{7, 77, 177, 211}},
                 .length = payload.size()};
  append_frame_head(out, head);
  size_t from = out.size();
  out.append(payload);
  apply_mask({out.data() + from, payload.size()}, *head.mask);
  return out;
}

Task<> raw_exchange(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(handshake(kGood) + masked(0x81, "Hello"));  // a message right behind the handshake
  std::string head = co_await peer.read_until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 101 "));
  EXPECT_THAT(head, HasSubstr("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  EXPECT_EQ(co_await peer.read_exactly(7), bytes({0x81, 5}) + "Hello");
  // Fragments with a ping between them, byte by byte.
  for (char c : masked(0x02, "ab") + masked(0x89, "are you there") + masked(0x00, "") + masked(0x80, "cd")) {
    co_await peer.send(std::string(1, c));
    co_await io::yield();
  }
  EXPECT_EQ(co_await peer.read_exactly(15), bytes({0x8a, 13}) + "are you there");
  EXPECT_EQ(co_await peer.read_exactly(7), bytes({0x82, 5}) + "<abcd");
  co_await peer.send(masked(0x8a, "unasked pong"));
  co_await peer.send(masked(0x88, bytes({0x03, 0xe8}) + "bye"));
  EXPECT_EQ(co_await peer.read_to_end(), bytes({0x88, 2, 0x03, 0xe8}));
  EXPECT_EQ(g_log, "closed 1000 bye\n");
}
TEST(WebSocket, RawExchange) { with_server(raw_exchange); }

Task<> bad_handshakes(Server& server, io::Executor executor) {
  struct {
    std::string fields, status;
  } cases[] = {
      {"", "426"},
      {"Connection: Upgrade\r\nUpgrade: h2c\r\n", "426"},
      {"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
       "426"},
      {"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: "
       "dGhlIHNhbXBsZSBub25jZQ==\r\n",
       "426"},
      {"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n", "400"},
      {"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
       "short\r\n",
       "400"},
  };
  for (const auto& c : cases) {
    RawPeer peer = dial(server, executor);
    co_await peer.send(handshake(c.fields));
    EXPECT_THAT((co_await peer.read_answer()).first,
                AllOf(StartsWith("HTTP/1.1 " + c.status), HasSubstr("Sec-WebSocket-Version: 13\r\n")));
  }
}
TEST(WebSocket, RefusesBadHandshakes) { with_server(bad_handshakes); }

// The other side may stop reading at any time.
Task<> send_quietly(RawPeer* peer, std::string frames) {
  std::ignore = co_await io::write_all(peer->socket(), frames);
}

Task<> violations(Server& server, io::Executor executor) {
  struct {
    const char* why;
    std::string frames;
    int code;
  } cases[] = {
      {"unmasked", bytes({0x81, 1}) + "a", 1002},
      {"continuation of nothing", masked(0x80, "a"), 1002},
      {"new message inside another", masked(0x01, "a") + masked(0x81, "b"), 1002},
      {"bad UTF-8", masked(0x81, "\xff"), 1007},
      {"bad UTF-8 across frames", masked(0x01, "\xc3") + masked(0x80, "a"), 1007},
      {"too long", masked(0x82, std::string((1 << 20) + 1, 'x')), 1009},
      {"too long in pieces", masked(0x02, std::string(1 << 20, 'x')) + masked(0x80, "x"), 1009},
      {"bad close code", masked(0x88, bytes({0x03, 0xed})), 1002},
      {"half a close code", masked(0x88, "x"), 1002},
      {"bad close reason", masked(0x88, bytes({0x03, 0xe8, 0xff})), 1007},
  };
  for (const auto& c : cases) {
    RawPeer peer = dial(server, executor);
    co_await peer.send(handshake(kGood));
    std::ignore = co_await peer.read_until("\r\n\r\n");
    io::TaskGroup group(executor);
    group.spawn(send_quietly(&peer, c.frames));
    std::string answer = co_await peer.read_exactly(4);
    EXPECT_EQ(answer, bytes({0x88, 2, c.code >> 8, c.code & 255})) << c.why;
    co_await group.close();
  }
}
TEST(WebSocket, ViolationsAreNamed) { with_server(violations); }

Task<> silent(Server& server, io::Executor executor) {
  RawPeer peer = dial(server, executor);
  co_await peer.send(handshake(kGood));
  std::ignore = co_await peer.read_until("\r\n\r\n");
  EXPECT_EQ(co_await peer.read_to_end(), "");
  EXPECT_THAT(g_log, HasSubstr("no answer within 200 ms"));
}
TEST(WebSocket, SilenceEndsIt) { with_server(silent); }

Task<> both_sides(Server& server, io::Executor executor) {
  auto [ours, theirs] = socket_pair(executor);
  server.adopt(std::move(theirs));
  ClientConnection connection(std::move(ours));
  auto socket =
      co_await connect_websocket(connection, {.method = "GET", .target = "/ws", .headers = {{"Host", "a"}}});
  EXPECT_TRUE(socket.has_value()) << socket.error().message;
  for (size_t size : {0, 1, 125, 126, 65535, 65536, 1 << 20}) {
    std::string data = sample_bytes(size);
    // Sending and receiving at once, as a megabyte does not fit into the socket.
    io::TaskGroup group(executor);
    struct Send {
      static Task<> run(WebSocket* s, std::string d) { std::ignore = co_await s->send_binary(d); }
    };
    group.spawn(Send::run(&*socket, data));
    auto message = co_await socket->read();
    EXPECT_TRUE(message.has_value() && message->has_value());
    EXPECT_FALSE((*message)->text);
    EXPECT_TRUE((*message)->data == "<" + data) << size;
    while (group.size() > 0) co_await io::yield();
  }
  EXPECT_TRUE((co_await socket->ping()).has_value());
  EXPECT_TRUE((co_await socket->send_text("close me")).has_value());
  auto end = co_await socket->read();
  EXPECT_TRUE(end.has_value() && !end->has_value());
  EXPECT_EQ(socket->close_reason().code, 4001);
  EXPECT_EQ(socket->close_reason().text, "TAKEN_OVER");
  EXPECT_FALSE((co_await socket->send_text("too late")).has_value());
  while (server.connections() > 0) co_await io::yield();
  EXPECT_EQ(g_log, "closed 4001 \n");
}
TEST(WebSocket, ClientAndServer) { with_server(both_sides); }

Task<Result<bool>> read_one(WebSocket* socket, std::string* out) {
  auto message = CO_TRY(co_await socket->read());
  *out = message->data;
  co_return true;
}
Task<> resumed() {
  auto executor = co_await io::asio::this_coro::executor;
  auto [a, b] = socket_pair(executor);
  WebSocket server(a, "", Role::server);
  RawPeer peer(std::move(b));
  std::string frames = masked(0x01, "abc") + masked(0x80, "def"), got;
  // A read that is cancelled at any byte loses nothing.
  for (char c : frames) {
    auto none = co_await io::with_deadline(1ms, "read", read_one(&server, &got));
    EXPECT_EQ(none.error().code, Code::timeout);
    co_await peer.send(std::string(1, c));
  }
  EXPECT_TRUE((co_await io::with_deadline(5s, "read", read_one(&server, &got))).has_value());
  EXPECT_EQ(got, "abcdef");
}
TEST(WebSocket, CancelledReadsLoseNothing) { run(resumed()); }

Task<> send_many(WebSocket* socket, char letter, int* done) {
  for (int i = 0; i < 20; ++i) {
    auto sent = co_await socket->send_binary(std::string(1, letter), std::string(100'000, letter));
    EXPECT_TRUE(sent.has_value());
  }
  ++*done;
}
Task<> concurrent_senders() {
  auto executor = co_await io::asio::this_coro::executor;
  auto [a, b] = socket_pair(executor);
  WebSocket server(a, "", Role::server), client(b, "", Role::client);
  io::TaskGroup group(executor);
  int done = 0;
  for (char letter : {'a', 'b', 'c'}) group.spawn(send_many(&server, letter, &done));
  for (int i = 0; i < 60; ++i) {
    auto message = co_await client.read();
    EXPECT_TRUE(message.has_value() && message->has_value());
    const std::string& data = (*message)->data;
    EXPECT_EQ(data.size(), 100'001u);
    EXPECT_EQ(data.find_first_not_of(data[0]), std::string::npos);
  }
  while (group.size() > 0) co_await io::yield();
  EXPECT_EQ(done, 3);
}
TEST(WebSocket, ConcurrentSendersDoNotMix) { run(concurrent_senders()); }

Task<> stuck() {
  auto executor = co_await io::asio::this_coro::executor;
  auto [a, b] = socket_pair(executor);
  WebSocket server(a, "", Role::server, {.write_timeout = 20ms});
  std::string big(1 << 20, 'x');
  auto sent = co_await server.send_binary(big);
  EXPECT_EQ(sent.error().code, Code::timeout);
  EXPECT_EQ((co_await server.ping()).error().code,
            Code::unavailable);  // half a frame is out: nothing may follow
}
TEST(WebSocket, PeerThatTakesNothing) { run(stuck()); }

}  // namespace
}  // namespace osb::http
