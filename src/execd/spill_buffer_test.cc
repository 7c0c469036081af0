#include "execd/spill_buffer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

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

// A limit on the size of files is what a full disk looks like without filling one.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(SpillBuffer, what_does_not_fit_on_disk_is_refused_or_held) {
  SpillBuffer buffer(10);
  std::string expected;
  {
    FullDisk disk(5000);
    while (!buffer.strained()) {
      std::string piece = "<" + std::to_string(expected.size()) + ">";
      buffer.append_or_hold(piece);
      expected += piece;
    }
    EXPECT_GT(expected.size(), 4900u);
    EXPECT_FALSE(buffer.append("refused")) << "behind what is held there is no place";
    buffer.append_or_hold("held");
    expected += "held";
  }
  EXPECT_EQ(take_all(buffer), expected);
  EXPECT_FALSE(buffer.strained());
  buffer.append_or_hold("again");
  EXPECT_EQ(take_all(buffer), "again");
}

}  // namespace
}  // namespace osb::execd
