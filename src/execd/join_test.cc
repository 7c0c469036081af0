#include "execd/join.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "base/fd.h"

namespace osb::execd {
namespace {

struct Pipe {
  Pipe() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    read = Fd(fds[0]);
    write = Fd(fds[1]);
  }
  Fd read, write;
};

// On loopback, with so many places in its queue and one more.
struct Listener {
  explicit Listener(int backlog) : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd.get(), any(), size), 0);
    EXPECT_EQ(::listen(fd.get(), backlog), 0);
    EXPECT_EQ(::getsockname(fd.get(), any(), &size), 0);
  }
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&address); }
  uint16_t port() const { return ntohs(address.sin_port); }
  Fd connect() {
    Fd out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(out.get(), any(), sizeof address), 0);
    return out;
  }
  sockaddr_in address{};
  Fd fd;
};

// The engine's side of a relay, and execd's.
class Join : public ::testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    socket_ = Fd(fds[0]);
    execd_ = Fd(fds[1]);
    start();
  }
  void start() {
    ::signal(SIGPIPE, SIG_IGN);  // as execd does
    thread_ = std::thread([this] {
      ended_ = relay(in_.read.get(), out_.write.get(), words_.write.get(), socket_.get()).has_value();
      for (Fd* fd : {&out_.write, &words_.write, &socket_}) fd->reset();
    });
  }
  void TearDown() override {
    in_.write.reset();
    execd_.reset();
    thread_.join();
  }
  static std::string rest(const Fd& fd) { return read_all(fd.get(), 64 << 20).value_or("?"); }

  Pipe in_, out_, words_;
  Fd socket_, execd_;
  std::thread thread_;
  bool ended_ = false;
};

// Started by the test.
class TcpJoin : public Join {
 protected:
  void SetUp() override {
    Listener listener(1);
    socket_ = listener.connect();
    execd_ = Fd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(execd_.valid());
  }
};

TEST_F(Join, ends_travel_one_by_one) {
  ASSERT_TRUE(write_all(in_.write.get(), "question"));
  in_.write.reset();
  EXPECT_EQ(rest(execd_), "question") << "and its end";
  ASSERT_TRUE(write_all(execd_.get(), "answer"));
  execd_.reset();
  EXPECT_EQ(rest(out_.read), "answer");
  EXPECT_EQ(rest(words_.read), "6\n");
}

TEST_F(Join, execd_may_be_silent_first) {
  ASSERT_TRUE(write_all(execd_.get(), "hello"));
  ASSERT_EQ(::shutdown(execd_.get(), SHUT_WR), 0);
  char line[2];
  ASSERT_EQ(::read(words_.read.get(), line, 2), 2);
  EXPECT_EQ(std::string(line, 2), "5\n");
  ASSERT_TRUE(write_all(in_.write.get(), "still heard"));
  in_.write.reset();
  EXPECT_EQ(rest(execd_), "still heard");
  EXPECT_EQ(rest(out_.read), "hello");
}

TEST_F(Join, more_than_any_buffer_holds) {
  std::string much(5 << 20, '\0');
  for (size_t i = 0; i < much.size(); ++i) much[i] = static_cast<char>(i * 7919 >> 8);
  std::thread feeder([&] {
    EXPECT_TRUE(write_all(in_.write.get(), much));
    in_.write.reset();
  });
  std::thread mirror([&] {
    char piece[4096];
    for (ssize_t got; (got = ::read(execd_.get(), piece, sizeof piece)) > 0;)
      EXPECT_TRUE(write_all(execd_.get(), {piece, static_cast<size_t>(got)}));
    execd_.reset();
  });
  EXPECT_TRUE(rest(out_.read) == much);
  feeder.join();
  mirror.join();
  EXPECT_EQ(rest(words_.read), std::to_string(much.size()) + "\n");
}

// One that has gone in the middle of what it is sent: its last words come out all the same.
TEST_F(Join, execd_goes_first) {
  ASSERT_TRUE(write_all(execd_.get(), "bye"));
  execd_.reset();
  std::thread feeder([&] {
    EXPECT_TRUE(write_all(in_.write.get(), std::string(1 << 20, 'x')));
    in_.write.reset();
  });
  EXPECT_EQ(rest(out_.read), "bye");
  EXPECT_EQ(rest(words_.read), "3\n");
  feeder.join();
}

// A connection that is reset, as one is whose owner has not read all: what came is told, and no end.
TEST_F(Join, a_break_is_no_end) {
  ASSERT_TRUE(write_all(in_.write.get(), "never read"));
  char first;
  ASSERT_EQ(::recv(execd_.get(), &first, 1, MSG_PEEK), 1);
  ASSERT_TRUE(write_all(execd_.get(), "half"));
  execd_.reset();
  in_.write.reset();
  EXPECT_EQ(rest(out_.read), "half");
  EXPECT_EQ(rest(words_.read), "");
}

// Whoever writes is told first, and a read finds an end after that.
TEST_F(TcpJoin, a_break_that_a_write_finds_is_no_end) {
  linger linger{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(::setsockopt(execd_.get(), SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
  execd_.reset();
  ASSERT_TRUE(write_all(in_.write.get(), "x"));
  start();
  in_.write.reset();
  EXPECT_EQ(rest(words_.read), "");
}

TEST(Connect, not_for_longer_than_somebody_waits) {
  using std::chrono::milliseconds;
  Listener listener(0);
  uint16_t port = listener.port();
  Fd first = listener.connect();  // and nobody else has room
  Pipe in;
  EXPECT_EQ(connect_for(in.read.get(), port, milliseconds(20)).error().code, Code::timeout);
  in.write.reset();
  EXPECT_EQ(connect_for(in.read.get(), port, milliseconds(20'000)).error().code, Code::cancelled);
  listener.fd.reset();
  first.reset();
  Pipe other;
  EXPECT_EQ(connect_for(other.read.get(), port, milliseconds(20)).error().code, Code::timeout) << "refused";
  other.write.reset();
  EXPECT_EQ(connect_for(other.read.get(), port, milliseconds(20'000)).error().code, Code::cancelled);
}

TEST(Connect, for_one_who_has_said_all) {
  Listener listener(8);
  Pipe in;
  ASSERT_TRUE(write_all(in.write.get(), "all"));
  in.write.reset();
  EXPECT_TRUE(connect_for(in.read.get(), listener.port(), std::chrono::seconds(20)));
}

TEST_F(Join, nobody_listens) {
  out_.read.reset();
  ASSERT_TRUE(write_all(execd_.get(), "hello"));
  EXPECT_EQ(rest(words_.read), "") << "without a word of how much there was";
  EXPECT_EQ(rest(execd_), "");
}

}  // namespace
}  // namespace osb::execd
