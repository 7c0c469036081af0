#include "transfer.h"

#include <gtest/gtest.h>

namespace load {
namespace {

constexpr std::string_view kStream =
    "{\"type\":\"init\",\"text\":\"0f\",\"timestamp\":1}\n\n"
    "{\"type\":\"stdout\",\"text\":\"hello\",\"timestamp\":1}\n\n"
    "{\"type\":\"ping\",\"text\":\"pong\",\"timestamp\":1}\n\n"
    "{\"type\":\"stderr\",\"text\":\"not counted\",\"timestamp\":1}\n\n"
    "{\"type\":\"stdout\",\"text\":\"\",\"timestamp\":1}\n\n"
    "{\"type\":\"execution_complete\",\"execution_time\":1,\"timestamp\":1}\n\n";

TEST(EventCounter, CountsWhateverThePieces) {
  for (size_t step : {1u, 2u, 7u, 64u, 100000u}) {
    EventCounter counter;
    for (size_t at = 0; at < kStream.size(); at += step) counter.feed(kStream.substr(at, step));
    EXPECT_EQ(counter.counted().lines, 2u);
    EXPECT_EQ(counter.counted().bytes, 5u);
    EXPECT_TRUE(counter.counted().complete);
  }
}

TEST(EventCounter, AnErrorIsNoCompletion) {
  EventCounter counter;
  counter.feed("{\"type\":\"error\",\"timestamp\":1}\n\n");
  EXPECT_FALSE(counter.counted().complete);
}

TEST(BareLoop, MovesEveryByte) {
  std::string problem;
  EXPECT_TRUE(receive_and_write("/dev/null", 3'000'000, problem)) << problem;
  EXPECT_FALSE(receive_and_write("/nonexistent/file", 3'000'000, problem));
}

TEST(MemoryStock, SaysWhenThereIsNotSoMuch) {
  std::string problem;
  MemoryStock stock;
  EXPECT_TRUE(stock.renew(3'000'000, problem)) << problem;
  EXPECT_TRUE(stock.renew(5'000'000, problem)) << problem;
  EXPECT_FALSE(stock.renew(uint64_t{1} << 60, problem));
  EXPECT_NE(problem, "");
}

}  // namespace
}  // namespace load
