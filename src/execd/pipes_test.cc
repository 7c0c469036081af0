#include "execd/pipes.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

namespace osb::execd {
namespace {

TEST(Pipes, OnlyOurEndDoesNotBlock) {
  for (Ours ours : {Ours::reads, Ours::writes}) {
    auto ends = make_pipe(ours);
    ASSERT_TRUE(ends);
    EXPECT_TRUE(::fcntl(ends->ours.get(), F_GETFL) & O_NONBLOCK);
    EXPECT_FALSE(::fcntl(ends->theirs.get(), F_GETFL) & O_NONBLOCK);
    for (int fd : {ends->ours.get(), ends->theirs.get()}) EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
  }
}

TEST(Pipes, DrainingTakesWhatIsThereAndNoMore) {
  boost::asio::io_context context;
  PipeEnd end(context);
  auto theirs = open_pipe(end);
  ASSERT_TRUE(theirs);
  ASSERT_EQ(::write(theirs->get(), "first", 5), 5);
  EXPECT_EQ(waiting_in(end.native_handle()), 5u);
  std::string taken;
  drain_pipe(end.native_handle(), [&](std::string_view bytes) {
    taken += bytes;
    ASSERT_EQ(::write(theirs->get(), "more", 4), 4) << "a writer without end";
  });
  EXPECT_EQ(taken, "first");
  EXPECT_TRUE(read_pipe(end.native_handle(), 2, [&](std::string_view bytes) { taken += bytes; }));
  EXPECT_EQ(taken, "firstmo");
}

TEST(Pipes, TheEndIsTold) {
  auto ends = make_pipe(Ours::reads);
  auto nothing = [](std::string_view) { FAIL(); };
  EXPECT_TRUE(read_pipe(ends->ours.get(), 10, nothing)) << "empty is not the end";
  ends->theirs.reset();
  EXPECT_FALSE(read_pipe(ends->ours.get(), 10, nothing));
  EXPECT_EQ(waiting_in(-1), 0u);
}

}  // namespace
}  // namespace osb::execd
