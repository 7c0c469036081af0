#include "execd/workers.h"

#include <gtest/gtest.h>

#include <thread>

#include "io/testing.h"

namespace osb::execd {
namespace {

bool no_thread(Workers&) { return false; }

io::Task<> expect_result(Workers& workers, bool elsewhere) {
  auto loop = std::this_thread::get_id();
  for (int i = 0; i < 10; ++i) {
    auto result = co_await workers.run(std::nullopt, [loop, i]() -> Result<std::pair<int, bool>> {
      return std::pair(i * i, std::this_thread::get_id() != loop);
    });
    EXPECT_TRUE(result);
    if (result) EXPECT_EQ(*result, std::pair(i * i, elsewhere));
  }
}

TEST(Workers, JobsRunOnAnotherThread) {
  io::asio::io_context loop(1);
  Workers workers(loop.get_executor());
  io::testing::run(loop, expect_result(workers, true));
}

TEST(Workers, WithoutRoomForAThreadTheLoopDoesTheWork) {
  io::asio::io_context loop(1);
  Workers workers(loop.get_executor(), no_thread);
  io::testing::run(loop, expect_result(workers, false));
}

}  // namespace
}  // namespace osb::execd
