#include "execd/join.h"

#include <fcntl.h>
#include <gtest/gtest.h>
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

// The engine's side of a relay, and execd's.
class Join : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as execd does
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    socket_ = Fd(fds[0]);
    execd_ = Fd(fds[1]);
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

TEST_F(Join, nobody_listens) {
  out_.read.reset();
  ASSERT_TRUE(write_all(execd_.get(), "hello"));
  EXPECT_EQ(rest(words_.read), "") << "without a word of how much there was";
  EXPECT_EQ(rest(execd_), "");
}

}  // namespace
}  // namespace osb::execd
