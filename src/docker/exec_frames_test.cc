#include "docker/exec_frames.h"

#include <gtest/gtest.h>

namespace osb::docker {
namespace {

std::string frame(char stream, std::string_view bytes) {
  std::string head{
      stream, 0, 0, 0, 0, 0, static_cast<char>(bytes.size() >> 8), static_cast<char>(bytes.size())};
  return head.append(bytes);
}

struct Heard {
  std::string bytes;
  bool ended = false;
  bool odd = false;
  bool operator==(const Heard&) const = default;
};

// In pieces of this size, taken into room of that size.
Heard hear(std::string_view stream, size_t piece = 1 << 20, size_t room = 1 << 20) {
  ExecFrames frames;
  Heard out;
  std::string into(room, '?');
  while (true) {
    auto got = frames.take(into);
    if (!got) {
      EXPECT_EQ(got.error().code, Code::corrupt);
      out.odd = true;
      return out;
    }
    out.bytes.append(into, 0, *got);
    out.ended = frames.ended();
    if (*got > 0) continue;
    if (stream.empty()) return out;
    frames.feed(stream.substr(0, piece));
    stream.remove_prefix(std::min(piece, stream.size()));
  }
}

TEST(ExecFrames, bytes_come_out_as_they_went_in) {
  std::string stream = frame(1, "hello ") + frame(1, "") + frame(1, "world");
  EXPECT_EQ(hear(stream), (Heard{"hello world"}));
  for (size_t piece : {1, 3, 7, 8, 9}) EXPECT_EQ(hear(stream, piece, 2), (Heard{"hello world"})) << piece;
}

TEST(ExecFrames, the_end_is_where_it_was_said_to_be) {
  std::string word = frame(2, "11\n");
  for (const std::string& stream :
       {frame(1, "hello ") + frame(1, "world") + word, frame(1, "hello ") + word + frame(1, "world"),
        word + frame(1, "hello world"), frame(2, "1") + frame(1, "hello world") + frame(2, "1\n")}) {
    EXPECT_EQ(hear(stream), (Heard{"hello world", true}));
    EXPECT_EQ(hear(stream, 1, 1), (Heard{"hello world", true}));
  }
  EXPECT_EQ(hear(frame(2, "0\n")), (Heard{"", true}));
}

TEST(ExecFrames, without_its_word_nothing_has_ended) {
  EXPECT_EQ(hear(""), Heard());
  EXPECT_EQ(hear(frame(1, "hello")), (Heard{"hello"}));
  EXPECT_EQ(hear(frame(2, "12\n") + frame(1, "hello world")), (Heard{"hello world"}));
  EXPECT_EQ(hear(frame(1, "hello") + frame(2, "5")), (Heard{"hello"})) << "a number may have more digits";
  EXPECT_EQ(hear(frame(1, "hello").substr(0, 12)), (Heard{"hell"}));
}

TEST(ExecFrames, what_no_engine_sends) {
  std::string word = frame(2, "5\n");
  for (const std::string& stream : {
           frame(0, "hello"),                           // standard input
           frame(3, "hello"),                           // an engine's own complaint
           std::string("HTTP/1.1 200 OK\r\n\r\n"),      // something else altogether
           std::string("\1\1\0\0\0\0\0\1x", 9),         // no padding
           std::string("\2\0\0\0\xff\xff\xff\xff", 8),  // words without an end
           frame(2, std::string(257, '1')),             // the same
           frame(2, std::string(200, '1')) + frame(2, std::string(200, '1')),
           frame(2, "no\n"),
           frame(2, "-1\n"),
           frame(2, "\n"),
           frame(2, "5 \n6\n"),
           frame(2, "5\n6"),
           frame(2, "99999999999999999999999\n"),
           word + word,
           word + frame(1, "hello!"),  // more than was sent
           frame(1, "hello!") + word,
       }) {
    EXPECT_TRUE(hear(stream).odd) << stream;
    EXPECT_TRUE(hear(stream, 1, 1).odd) << stream;
  }
}

}  // namespace
}  // namespace osb::docker
