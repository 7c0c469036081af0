#include "execd/spill_buffer.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

std::string take_all(SpillBuffer& buffer) {
  std::string all, piece;
  while (!buffer.empty()) {
    EXPECT_TRUE(buffer.take(piece));
    all += piece;
  }
  return all;
}

TEST(SpillBuffer, keeps_order_across_memory_and_file) {
  SpillBuffer buffer(10);
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    std::string piece = "<" + std::to_string(i) + ">";
    ASSERT_TRUE(buffer.append(piece));
    expected += piece;
  }
  EXPECT_EQ(take_all(buffer), expected);
  EXPECT_TRUE(buffer.empty());
}

TEST(SpillBuffer, interleaved_reads) {
  SpillBuffer buffer(16);
  std::string expected, got, piece;
  for (int i = 0; i < 5000; ++i) {
    std::string text = std::to_string(i) + ",";
    ASSERT_TRUE(buffer.append(text));
    expected += text;
    if (i % 7 == 0) {
      ASSERT_TRUE(buffer.take(piece));
      got += piece;
    }
  }
  got += take_all(buffer);
  EXPECT_EQ(got, expected);
}

TEST(SpillBuffer, large_pieces) {
  SpillBuffer buffer(1000);
  std::string big(3 << 20, 'x');
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>('a' + i % 23);
  ASSERT_TRUE(buffer.append(big));
  ASSERT_TRUE(buffer.append("end"));
  EXPECT_EQ(take_all(buffer), big + "end");
  ASSERT_TRUE(buffer.append("again"));
  EXPECT_EQ(take_all(buffer), "again");
}

TEST(SpillBuffer, clear) {
  SpillBuffer buffer(4);
  ASSERT_TRUE(buffer.append("0123456789"));
  buffer.clear();
  EXPECT_TRUE(buffer.empty());
  ASSERT_TRUE(buffer.append("ab"));
  EXPECT_EQ(take_all(buffer), "ab");
}

}  // namespace
}  // namespace osb::execd
