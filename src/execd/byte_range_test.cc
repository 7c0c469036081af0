#include "execd/byte_range.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

using Found = std::optional<ByteRange>;

TEST(ByteRange, forms) {
  EXPECT_EQ(*parse_range("bytes=0-3", 10), Found({0, 3}));
  EXPECT_EQ(*parse_range("bytes=4-", 10), Found({4, 9}));
  EXPECT_EQ(*parse_range("bytes=-3", 10), Found({7, 9}));
  EXPECT_EQ(*parse_range("bytes=-30", 10), Found({0, 9}));
  EXPECT_EQ(*parse_range("bytes=0-0", 10), Found({0, 0}));
  EXPECT_EQ(*parse_range("bytes=8-100", 10), Found({8, 9}));
  EXPECT_EQ(*parse_range("bytes=8-99999999999999999999999", 10), Found({8, 9}));
  EXPECT_EQ(*parse_range("bytes= 2 - 3 ", 10), Found({2, 3}));
  EXPECT_EQ(*parse_range("bytes=20-30, 1-2,4-5", 10), Found({1, 2})) << "the first satisfiable one";
}

TEST(ByteRange, unsatisfiable) {
  EXPECT_EQ(*parse_range("bytes=10-", 10), Found());
  EXPECT_EQ(*parse_range("bytes=10-12,99999999999999999999999-", 10), Found());
  EXPECT_EQ(*parse_range("bytes=-0", 10), Found());
  EXPECT_EQ(*parse_range("bytes=0-", 0), Found());
  EXPECT_EQ(*parse_range("bytes=-5", 0), Found());
}

TEST(ByteRange, malformed) {
  for (const char* header :
       {"", "0-3", "items=0-3", "bytes=", "bytes=,", "bytes=a-b", "bytes=3", "bytes=5-3", "bytes=-",
        "bytes=--3", "bytes=1-2,x", "bytes=+1-2", "bytes=1-2-3", "bytes 0-3", "bytes=0x1-2"}) {
    EXPECT_FALSE(parse_range(header, 10)) << header;
  }
}

}  // namespace
}  // namespace osb::execd
