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

}  // namespace
}  // namespace osb::http
