#include "http/head_format.h"

#include <gtest/gtest.h>

#include <ctime>

#include "http/head_check.h"

namespace osb::http {
namespace {

TEST(HttpDate, IsTheTimeNow) {
  std::string text(http_date());
  std::tm parsed{};
  const char* end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parsed);
  ASSERT_NE(end, nullptr) << text;
  EXPECT_EQ(*end, '\0');
  EXPECT_LE(std::abs(::timegm(&parsed) - ::time(nullptr)), 2) << text;
}

TEST(ChunkPrefix, IsHexadecimal) {
  ChunkPrefix memory;
  EXPECT_EQ(chunk_prefix(1, memory), "1\r\n");
  EXPECT_EQ(chunk_prefix(0xabc, memory), "abc\r\n");
  EXPECT_EQ(chunk_prefix(~uint64_t{0}, memory), "ffffffffffffffff\r\n");
}

TEST(FormatRequestHead, PassesOurOwnCheck) {
  RequestHead head{
      .method = "POST", .target = "/a?b", .headers = {{"Host", "x"}, {"Content-Length", "9"}, {"X", ""}}};
  std::string out;
  ASSERT_TRUE(format_request_head(head, {BodyFraming::Kind::length, 3}, out).has_value());
  EXPECT_EQ(out, "POST /a?b HTTP/1.1\r\nHost: x\r\nX: \r\nContent-Length: 3\r\n\r\n");
  EXPECT_TRUE(check_request_head(out).has_value());
  ASSERT_TRUE(format_request_head(head, {BodyFraming::Kind::chunked}, out).has_value());
  EXPECT_TRUE(check_request_head(out).has_value());
}

TEST(FormatRequestHead, RefusesInjection) {
  std::string out;
  auto code = [&](RequestHead head) { return format_request_head(head, {}, out).has_value(); };
  EXPECT_FALSE(code({.method = "GET / HTTP/1.1\r\nX:", .target = "/"}));
  EXPECT_FALSE(code({.method = "", .target = "/"}));
  EXPECT_FALSE(code({.method = "GET", .target = "/ HTTP/1.1\r\nX: y"}));
  EXPECT_FALSE(code({.method = "GET", .target = ""}));
  EXPECT_FALSE(code({.method = "GET", .target = "http://a/"}));
  EXPECT_FALSE(code({.method = "GET", .target = "/", .headers = {{"X", "a\r\nY: b"}}}));
  EXPECT_FALSE(code({.method = "GET", .target = "/", .headers = {{"X", "a\nY: b"}}}));
  EXPECT_FALSE(code({.method = "GET", .target = "/", .headers = {{"X: y\r\nZ", "a"}}}));
  EXPECT_FALSE(code({.method = "GET", .target = "/", .headers = {{"", "a"}}}));
  EXPECT_TRUE(code({.method = "GET", .target = "/", .headers = {{"X", "a"}}}));
}

TEST(FormatResponseHead, OwnsTheFraming) {
  std::string out;
  Headers headers{{"Content-Length", "1"},
                  {"Transfer-Encoding", "gzip"},
                  {"Connection", "close"},
                  {"Date", "d"},
                  {"X", "y"}};
  ASSERT_TRUE(
      format_response_head({200, headers, {}, {BodyFraming::Kind::length, 7}, false}, out).has_value());
  EXPECT_EQ(out, "HTTP/1.1 200 OK\r\nDate: d\r\nX: y\r\nContent-Length: 7\r\n\r\n");
  ASSERT_TRUE(format_response_head({599, headers, {{"Date", "e"}, {"A", "b"}}, {}, true}, out).has_value());
  EXPECT_EQ(out, "HTTP/1.1 599 \r\nDate: d\r\nX: y\r\nA: b\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace osb::http
