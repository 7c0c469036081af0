#include "http/body_decoder.h"

#include <gtest/gtest.h>

namespace osb::http {
namespace {

struct Outcome {
  std::string payload;
  size_t consumed = 0;
  bool done = false;
  bool failed = false;
};

// Feeds the input in pieces of `step` bytes and takes the payload in pieces of `room` bytes.
Outcome decode(BodyDecoder decoder, std::string_view input, size_t step, size_t room) {
  Outcome out;
  std::string buffer(room, '\0');
  size_t from = 0, to = 0;
  while (!decoder.done()) {
    auto result = decoder.decode(input.substr(from, to - from), buffer);
    if (!result) {
      out.failed = true;
      break;
    }
    out.payload.append(buffer, 0, result->produced);
    from += result->consumed;
    if (result->consumed == 0 && result->produced == 0) {
      if (to == input.size()) break;
      to = std::min(input.size(), to + step);
    }
  }
  out.consumed = from;
  out.done = decoder.done();
  return out;
}

void expect_everywhere(const BodyDecoder& decoder, std::string_view input, std::string_view payload,
                       size_t consumed) {
  for (size_t step : {1, 2, 3, 7, 1000}) {
    for (size_t room : {1, 2, 5, 1000}) {
      Outcome out = decode(decoder, input, step, room);
      EXPECT_TRUE(out.done) << input;
      EXPECT_EQ(out.payload, payload) << input;
      EXPECT_EQ(out.consumed, consumed) << input;
    }
  }
}

TEST(BodyDecoder, NoBodyIsDone) {
  EXPECT_TRUE(BodyDecoder().done());
  EXPECT_EQ(BodyDecoder().declared(), 0u);
  EXPECT_TRUE(BodyDecoder::with_length(0).done());
}

TEST(BodyDecoder, LengthStopsExactly) {
  expect_everywhere(BodyDecoder::with_length(5), "helloGET / HTTP/1.1", "hello", 5);
  EXPECT_EQ(BodyDecoder::with_length(5).declared(), 5u);
}

TEST(BodyDecoder, ChunksStopExactly) {
  std::string_view next = "GET /";
  struct {
    std::string input, payload;
  } cases[] = {
      {"0\r\n\r\n", ""},
      {"5\r\nhello\r\n0\r\n\r\n", "hello"},
      {"00005\r\nhello\r\n000\r\n\r\n", "hello"},
      {"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world"},
      {"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"},
      {"5;name=value;x=\"y z\"\r\nhello\r\n0;last\r\n\r\n", "hello"},
      {"2\r\n\r\n\r\n0\r\n\r\n", "\r\n"},
      {"1\r\na\r\n0\r\nTrailer: value\r\nOther: x\r\n\r\n", "a"},
  };
  for (const auto& c : cases)
    expect_everywhere(BodyDecoder::chunked(), c.input + std::string(next), c.payload, c.input.size());
}

TEST(BodyDecoder, RejectsBadChunks) {
  std::string long_extension =
      "1;" + std::string(BodyDecoder::kMaxExtensionBytes + 1, 'x') + "\r\na\r\n0\r\n\r\n";
  std::string many_extensions;
  for (int i = 0; i < 90; ++i) many_extensions += "1;" + std::string(100, 'x') + "\r\na\r\n";
  std::string long_trailer = "0\r\nX: " + std::string(BodyDecoder::kMaxTrailerBytes, 'x') + "\r\n\r\n";
  std::string many_trailers = "0\r\n";
  for (int i = 0; i < 3000; ++i) many_trailers += "X: y\r\n";
  const std::string cases[] = {
      "\r\n",
      "\r\n0\r\n\r\n",
      "x\r\n",
      " 5\r\nhello\r\n0\r\n\r\n",
      "5 \r\nhello\r\n0\r\n\r\n",
      "+5\r\nhello\r\n0\r\n\r\n",
      "-1\r\n",
      "0x5\r\nhello\r\n0\r\n\r\n",
      "5\nhello\r\n0\r\n\r\n",
      "5\rhello\r\n0\r\n\r\n",
      "5\r\r\nhello\r\n0\r\n\r\n",
      "5\r\nhello\n0\r\n\r\n",
      "5\r\nhello!\r\n0\r\n\r\n",
      "5\r\nhell\r\n0\r\n\r\n",
      "5\r\nhello0\r\n\r\n",
      "5\r\nhello\r\r\n0\r\n\r\n",
      "0\r\n\n",
      "0\n\n",
      "0\r\nX: y\n\r\n",
      "0\r\nX y\r\n\r\n",
      "0\r\n X: y\r\n\r\n",
      "0\r\nX : y\r\n\r\n",
      "0\r\nX: y\rz\r\n\r\n",
      std::string("0\r\nX: \0\r\n\r\n", 11),
      "1000000000000000\r\n",
      "0000000000000001\r\na\r\n0\r\n\r\n",
      "ffffffffffffffff\r\n",
      "5;a\nb\r\nhello\r\n0\r\n\r\n",
      std::string("5;\0\r\nhello\r\n0\r\n\r\n", 17),
      "5;a\x7f\r\nhello\r\n0\r\n\r\n",
      ";a\r\n",
      long_extension,
      many_extensions,
      long_trailer,
      many_trailers,
  };
  for (const std::string& input : cases) {
    for (size_t step : {size_t{1}, size_t{4}, size_t{100000}}) {
      Outcome out = decode(BodyDecoder::chunked(), input, step, 100);
      EXPECT_TRUE(out.failed) << input.substr(0, 40);
      EXPECT_FALSE(out.done) << input.substr(0, 40);
    }
  }
}

TEST(BodyDecoder, TruncationIsAnError) {
  std::string whole = "5\r\nhello\r\n0\r\nX: y\r\n\r\n";
  for (size_t n = 0; n < whole.size(); ++n) {
    BodyDecoder decoder = BodyDecoder::chunked();
    char buffer[100];
    ASSERT_TRUE(decoder.decode(whole.substr(0, n), buffer).has_value());
    EXPECT_FALSE(decoder.done());
    EXPECT_EQ(decoder.end_of_stream().error().code, Code::unavailable) << n;
  }
  BodyDecoder length = BodyDecoder::with_length(2);
  EXPECT_FALSE(length.end_of_stream().has_value());
}

TEST(BodyDecoder, UntilCloseEndsWithTheStream) {
  BodyDecoder decoder = BodyDecoder::until_close();
  char buffer[100];
  EXPECT_EQ(decoder.decode("abc", buffer)->produced, 3u);
  EXPECT_FALSE(decoder.done());
  EXPECT_EQ(decoder.declared(), std::nullopt);
  EXPECT_GT(decoder.direct(), 1u << 30);
  decoder.skip(100);
  EXPECT_TRUE(decoder.end_of_stream().has_value());
  EXPECT_TRUE(decoder.done());
}

TEST(BodyDecoder, DirectReadsStayWithinTheChunk) {
  BodyDecoder decoder = BodyDecoder::chunked();
  EXPECT_EQ(decoder.direct(), 0u);
  char buffer[4];
  auto step = decoder.decode("a\r\n01", buffer);
  EXPECT_EQ(step->produced, 2u);
  EXPECT_EQ(decoder.direct(), 8u);
  decoder.skip(8);
  EXPECT_EQ(decoder.direct(), 0u);
  EXPECT_EQ(decoder.decode("\r\n0\r\n\r\n", buffer)->consumed, 7u);
  EXPECT_TRUE(decoder.done());
}

}  // namespace
}  // namespace osb::http
