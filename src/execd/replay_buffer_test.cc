#include "execd/replay_buffer.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

TEST(ReplayBuffer, offsets) {
  ReplayBuffer buffer;
  EXPECT_EQ(buffer.since(0).bytes, "");
  buffer.append("hello ");
  buffer.append("world");
  EXPECT_EQ(buffer.total(), 11u);
  EXPECT_EQ(buffer.since(0).bytes, "hello world");
  EXPECT_EQ(buffer.since(6).bytes, "world");
  EXPECT_EQ(buffer.since(6).offset, 6u);
  EXPECT_EQ(buffer.since(11).bytes, "");
  EXPECT_EQ(buffer.since(99).bytes, "");
}

TEST(ReplayBuffer, keeps_the_last_megabyte) {
  ReplayBuffer buffer;
  std::string all;
  for (int i = 0; i < 40'000; ++i) {
    std::string piece = "line " + std::to_string(i) + " with some more text to fill it up\n";
    buffer.append(piece);
    all += piece;
  }
  ASSERT_GT(all.size(), ReplayBuffer::kLimit);
  auto piece = buffer.since(0);
  EXPECT_EQ(piece.offset, all.size() - ReplayBuffer::kLimit);
  EXPECT_EQ(piece.bytes, all.substr(all.size() - ReplayBuffer::kLimit));
  EXPECT_EQ(buffer.since(all.size() - 5).bytes, all.substr(all.size() - 5));
  buffer.append(std::string(3 * ReplayBuffer::kLimit, 'z'));
  EXPECT_EQ(buffer.since(0).bytes, std::string(ReplayBuffer::kLimit, 'z'));
  EXPECT_EQ(buffer.total(), all.size() + 3 * ReplayBuffer::kLimit);
}

}  // namespace
}  // namespace osb::execd
