#include "http/reverse_proxy_fixture.h"

namespace osb::http {
namespace {

using namespace proxy_fixture;
using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const char* kHandshake =
    "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: "
    "13\r\n";

Task<> tunnelled(Proxy& proxy, RawPeer client) {
  co_await client.send(get("/ws", kHandshake) + "early");
  std::string head = co_await proxy.upstream->read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  EXPECT_THAT(head, HasSubstr("Sec-WebSocket-Key: x\r\n"));
  co_await proxy.upstream->send(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
      "Upgrade\r\nSec-WebSocket-Accept: y\r\n\r\nhello");
  std::string answer = co_await client.read_until("\r\n\r\n");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 101 Switching Protocols\r\n"),
                            HasSubstr("Sec-WebSocket-Accept: y\r\n"), HasSubstr("Connection: Upgrade\r\n"),
                            HasSubstr("Upgrade: websocket\r\n"), Not(HasSubstr("Length"))));
  EXPECT_EQ(co_await client.read_exactly(5), "hello");
  EXPECT_EQ(co_await proxy.upstream->read_exactly(5), "early");
  std::string bytes = sample_bytes(1 << 20);
  io::TaskGroup group(proxy.executor);
  group.spawn(send_all(&client, bytes));
  group.spawn(send_all(&*proxy.upstream, bytes));
  EXPECT_TRUE(co_await client.read_exactly(bytes.size()) == bytes);
  EXPECT_TRUE(co_await proxy.upstream->read_exactly(bytes.size()) == bytes);
  client.shut_write();  // one direction ends, the other goes on
  EXPECT_EQ(co_await proxy.upstream->read_to_end(), "");
  co_await proxy.upstream->send("still here");
  EXPECT_EQ(co_await client.read_exactly(10), "still here");
  proxy.upstream->shut_write();
  EXPECT_EQ(co_await client.read_to_end(), "");
  co_await proxy.wait_answered(1);
  EXPECT_EQ(proxy.last.outcome, Relay::complete);
  EXPECT_FALSE(proxy.reusable);
  co_await group.close();
}
TEST(ReverseProxy, WebSocketBecomesATunnel) { with_proxy(tunnelled); }

Task<> refused_upgrade(Proxy& proxy, RawPeer client) {
  co_await client.send(get("/ws", kHandshake));
  std::ignore = co_await proxy.upstream->read_until("\r\n\r\n");
  co_await proxy.upstream->send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  EXPECT_EQ((co_await client.read_answer()).second, "no");
  // Who names several gets none; then a change is one that nobody asked for.
  co_await client.send(get("/", "Connection: Upgrade\r\nUpgrade: h2c, other\r\n"));
  EXPECT_EQ(co_await proxy.upstream->read_until("\r\n\r\n"), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  co_await proxy.upstream->send(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n");
  EXPECT_THAT((co_await client.read_answer()).first, StartsWith("HTTP/1.1 502 "));
}
TEST(ReverseProxy, AChangeOfProtocolsThatWasNotAskedForIsRefused) { with_proxy(refused_upgrade); }

Task<> raw_upgrade(Proxy& proxy, RawPeer client) {
  co_await client.send(get("/attach", "Connection: upgrade\r\nUpgrade: tcp\r\n"));
  EXPECT_EQ(co_await proxy.upstream->read_until("\r\n\r\n"),
            "GET /attach HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
  co_await proxy.upstream->send(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\nhello\n");
  EXPECT_THAT(co_await client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 101 "));
  EXPECT_EQ(co_await client.read_until("\n"), "hello\n");
  co_await client.send("and back\n");
  EXPECT_EQ(co_await proxy.upstream->read_until("\n"), "and back\n");
}
TEST(ReverseProxy, AnyOneProtocolBecomesATunnel) { with_proxy(raw_upgrade); }

}  // namespace
}  // namespace osb::http
