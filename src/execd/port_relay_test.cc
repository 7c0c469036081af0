#include "execd/port_relay.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "io/socket.h"
#include "io/testing.h"

namespace osb::execd {
namespace {

using io::Task;

uint16_t port_of(int listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

std::string name_of(uint16_t port) { return {static_cast<char>(port >> 8), static_cast<char>(port & 0xff)}; }

size_t open_files() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

Task<std::string> read_to_end(io::Socket& socket) {
  std::string out;
  char piece[4096];
  while (true) {
    auto got = co_await io::read_some(socket, piece);
    if (!got || *got == 0) co_return out;
    out.append(piece, *got);
  }
}

// A program that says what it was told, when it was told all.
Task<> repeat(io::Acceptor& acceptor, bool& ended) {
  auto socket = co_await acceptor.accept();
  EXPECT_TRUE(socket);
  std::string said = co_await read_to_end(*socket);
  EXPECT_TRUE(co_await io::write_all(*socket, std::string_view(said)));
  ended = true;
}

class PortRelay : public testing::Test {
 public:
  PortRelay() {
    char name[] = "/tmp/osb-ports-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  ~PortRelay() override { std::filesystem::remove_all(directory_); }
  std::string path() const { return directory_ + "/ports"; }
  // With a relay that runs meanwhile.
  void run(const std::function<Task<>(PortRelay&)>& body) { io::testing::run(with_relay(*this, body)); }
  static Task<> with_relay(PortRelay& self, const std::function<Task<>(PortRelay&)>& body) {
    io::TaskGroup tasks(co_await io::asio::this_coro::executor);
    auto listener = io::listen_unix(self.path(), 8);
    EXPECT_TRUE(listener);
    tasks.spawn(relay_ports(tasks, std::move(*listener)));
    co_await body(self);
    co_await tasks.close();
  }
  std::string directory_;
};

Task<> say_and_hear(PortRelay& self) {
  auto executor = co_await io::asio::this_coro::executor;
  auto listener = io::listen_tcp("127.0.0.1", 0, 8);
  uint16_t port = port_of(listener->get());
  io::Acceptor program(executor, std::move(*listener));
  bool ended = false;
  io::TaskGroup tasks(executor);
  tasks.spawn(repeat(program, ended));
  auto way = co_await io::connect_unix(self.path());
  // What comes with the port already is the port's.
  EXPECT_TRUE(co_await io::write_all(*way, std::string_view(name_of(port) + "one")));
  std::string big(1 << 20, 'x');
  EXPECT_TRUE(co_await io::write_all(*way, std::string_view(big)));
  boost::system::error_code ignored;
  way->shutdown(io::Socket::shutdown_send, ignored);
  EXPECT_EQ(co_await read_to_end(*way), std::string(1, '\0') + "one" + big);
  EXPECT_TRUE(ended);
  co_await tasks.close();
}

TEST_F(PortRelay, BothDirectionsEndByThemselves) { run(say_and_hear); }

Task<> ask_for_nothing(PortRelay& self) {
  uint16_t port = port_of(io::listen_tcp("127.0.0.1", 0, 8)->get());  // closed again
  auto way = co_await io::connect_unix(self.path());
  EXPECT_TRUE(co_await io::write_all(*way, std::string_view(name_of(port))));
  EXPECT_EQ(co_await read_to_end(*way), std::string(1, static_cast<char>(ECONNREFUSED)));
}

TEST_F(PortRelay, WhyThereIsNoneIsSaid) { run(ask_for_nothing); }

Task<> go_away(PortRelay& self) {
  auto listener = io::listen_tcp("127.0.0.1", 0, 8);
  uint16_t port = port_of(listener->get());
  io::Acceptor program(co_await io::asio::this_coro::executor, std::move(*listener));
  auto way = co_await io::connect_unix(self.path());
  EXPECT_TRUE(co_await io::write_all(*way, std::string_view(name_of(port) + "last words")));
  char answer = 1;
  EXPECT_EQ(co_await io::read_some(*way, {&answer, 1}), 1u);
  EXPECT_EQ(answer, 0);
  auto inside = co_await program.accept();
  size_t before = open_files();
  way->close();
  EXPECT_EQ(co_await read_to_end(*inside), "last words");
  // The program neither writes nor closes; the relay closes both of its ends all the same.
  for (int i = 0; i < 2000 && open_files() > before - 3; ++i)
    co_await io::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(open_files(), before - 3);
}

TEST_F(PortRelay, AServerThatClosesIsNotWaitedFor) { run(go_away); }

}  // namespace
}  // namespace osb::execd
