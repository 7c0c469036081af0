#include "base/frame.h"

#include <gtest/gtest.h>

namespace osb {
namespace {

std::vector<std::string> read_all(FrameReader& reader, std::string_view bytes, size_t piece) {
  std::vector<std::string> out;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    reader.feed(bytes.substr(at, piece));
    while (true) {
      auto frame = reader.next();
      EXPECT_TRUE(frame);
      if (!frame || !*frame) break;
      out.push_back(std::move(**frame));
    }
  }
  return out;
}

TEST(FrameReader, GivesTheSameFramesHoweverTheyArrive) {
  std::string large(100000, 'x');
  std::string bytes = encode_frame("{}") + encode_frame("") + encode_frame(large) + encode_frame("{\"a\":1}");
  for (size_t piece : {size_t{1}, size_t{3}, size_t{4}, size_t{4096}, bytes.size()}) {
    FrameReader reader(64 << 20);
    EXPECT_EQ(read_all(reader, bytes, piece), (std::vector<std::string>{"{}", "", large, "{\"a\":1}"}))
        << piece;
  }
}

TEST(FrameReader, RefusesWhatIsTooLongBeforeItArrives) {
  FrameReader reader(64 << 20);
  reader.feed(std::string_view("\x04\x00\x00\x01", 4));
  auto frame = reader.next();
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code, Code::too_large);
}

TEST(FrameReader, AcceptsTheLongestLength) {
  FrameReader reader(64 << 20);
  reader.feed(std::string_view("\x04\x00\x00\x00", 4));
  auto frame = reader.next();
  ASSERT_TRUE(frame);
  EXPECT_FALSE(*frame);
}

}  // namespace
}  // namespace osb
