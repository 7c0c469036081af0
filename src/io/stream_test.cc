#include "io/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "io/stream_pump.h"
#include "io/testing.h"

namespace osb::io {
namespace {

// Gives back what it gets, in capitals, and ends when the other side does.
class Shouting : public ForeignStream {
 public:
  explicit Shouting(Executor executor, int* alive) : more_(executor), alive_(alive) { ++*alive_; }
  ~Shouting() override { --*alive_; }
  Task<Result<size_t>> read_some(std::span<char> into) override {
    while (text_.empty() && !ended_) {
      more_.reset();
      co_await more_.wait();
    }
    size_t size = std::min(into.size(), text_.size());
    std::copy_n(text_.begin(), size, into.begin());
    text_.erase(0, size);
    co_return size;
  }
  Task<Result<void>> write_all(std::string_view bytes) override {
    for (char c : bytes) text_.push_back(static_cast<char>(std::toupper(c)));
    more_.set();
    co_return Result<void>();
  }
  void shutdown_send() override {
    ended_ = true;
    more_.set();
  }

 private:
  std::string text_;
  bool ended_ = false;
  Event more_;
  int* alive_;
};

Task<> talk(Executor executor, int* alive, std::string* heard) {
  TaskGroup pumps(executor);
  auto socket = to_socket(Stream(std::make_unique<Shouting>(executor, alive)), executor, pumps);
  EXPECT_TRUE(socket);
  EXPECT_EQ(pumps.size(), 1u);
  EXPECT_TRUE(co_await write_all(*socket, "hello, "));
  EXPECT_TRUE(co_await write_all(*socket, "you"));
  boost::system::error_code ignored;
  socket->shutdown(Socket::shutdown_send, ignored);
  char piece[4];
  while (true) {
    auto got = co_await read_some(*socket, piece);
    EXPECT_TRUE(got);
    if (!got || *got == 0) break;
    heard->append(piece, *got);
  }
  for (int i = 0; i < 100 && *alive > 0; ++i) co_await yield();
  EXPECT_EQ(*alive, 0) << "both directions have ended";
  co_await pumps.close();
}

TEST(Stream, WhatIsNoSocketIsJoinedToOne) {
  asio::io_context loop{1};
  std::string heard;
  int alive = 0;
  testing::run(loop, talk(loop.get_executor(), &alive, &heard));
  EXPECT_EQ(heard, "HELLO, YOU");
}

Task<> hang_up(Executor executor, int* alive) {
  TaskGroup pumps(executor);
  {
    auto socket = to_socket(Stream(std::make_unique<Shouting>(executor, alive)), executor, pumps);
    EXPECT_TRUE(co_await write_all(*socket, "x"));
  }
  for (int i = 0; i < 1000 && *alive > 0; ++i) co_await sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(*alive, 0) << "nobody listens any more";
  co_await pumps.close();
}

TEST(Stream, ASocketThatIsClosedEndsTheOther) {
  asio::io_context loop{1};
  int alive = 0;
  testing::run(loop, hang_up(loop.get_executor(), &alive));
}

// Says something, and breaks; or never hears anything.
class Breaking : public ForeignStream {
 public:
  explicit Breaking(Executor executor, bool deaf) : for_ever_(executor), deaf_(deaf) {}
  Task<Result<size_t>> read_some(std::span<char> into) override {
    if (deaf_) co_await for_ever_.wait();
    if (std::exchange(said_, true)) co_return fail(Code::unavailable, "cut");
    std::copy_n("half", 4, into.begin());
    co_return 4;
  }
  Task<Result<void>> write_all(std::string_view) override {
    if (deaf_) co_await for_ever_.wait();
    co_return fail(Code::unavailable, "cut");
  }
  void shutdown_send() override {}

 private:
  Event for_ever_;
  bool deaf_, said_ = false;
};

Task<> read_what_breaks(Executor executor, std::string_view said) {
  TaskGroup pumps(executor);
  auto socket = to_socket(Stream(std::make_unique<Breaking>(executor, false)), executor, pumps);
  EXPECT_TRUE(co_await write_all(*socket, said));
  char piece[16];
  auto got = co_await read_some(*socket, piece);
  EXPECT_EQ(got.value_or(0), 4u);
  got = co_await read_some(*socket, piece);
  EXPECT_FALSE(got) << "that was no end";
  EXPECT_EQ(got.error().code, Code::unavailable);
  co_await pumps.close();
}

TEST(Stream, ABreakIsNoEnd) {
  asio::io_context loop{1};
  testing::run(loop, read_what_breaks(loop.get_executor(), ""));
  testing::run(loop, read_what_breaks(loop.get_executor(), "nobody hears this"));
}

Task<> end_in_the_middle(Executor executor) {
  TaskGroup pumps(executor);
  int alive = 0;
  auto socket = to_socket(Stream(std::make_unique<Shouting>(executor, &alive)), executor, pumps);
  co_await yield();
  co_await pumps.close();
  char piece[16];
  EXPECT_FALSE(co_await read_some(*socket, piece)) << "whoever carries it has gone";
}

TEST(Stream, AServerThatEndsIsNoEndEither) {
  asio::io_context loop{1};
  testing::run(loop, end_in_the_middle(loop.get_executor()));
}

Task<> leave(Executor executor, bool closed, bool* over) {
  int pair[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  Socket half = std::move(*adopt(executor, Fd(pair[0])));
  Fd other(pair[1]);
  EXPECT_TRUE(osb::write_all(other.get(), "nobody takes this"));
  if (closed)
    other.reset();
  else
    ::shutdown(other.get(), SHUT_WR);
  auto deaf = std::make_unique<Breaking>(executor, true);
  auto patience = std::chrono::milliseconds(closed ? 1 : 0);
  int first = co_await race(pump(executor, std::move(deaf), std::move(half), patience),
                            sleep_for(std::chrono::milliseconds(closed ? 20'000 : 50)));
  *over = first == 0;
}

TEST(Stream, OneThatIsLeftAloneEndsAlthoughNobodyReads) {
  asio::io_context loop{1};
  bool over = false;
  testing::run(loop, leave(loop.get_executor(), true, &over));
  EXPECT_TRUE(over);
  testing::run(loop, leave(loop.get_executor(), false, &over));
  EXPECT_FALSE(over) << "whoever has said all may still hear";
}

TEST(Stream, ASocketIsGivenOutAsItIs) {
  asio::io_context loop{1};
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  Fd other(pair[1]);
  Stream stream(*adopt(loop.get_executor(), Fd(pair[0])));
  EXPECT_TRUE(stream.is_socket());
  TaskGroup pumps(loop.get_executor());
  auto socket = to_socket(std::move(stream), loop.get_executor(), pumps);
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->native_handle(), pair[0]);
  EXPECT_EQ(pumps.size(), 0u);
}

}  // namespace
}  // namespace osb::io
