#include "http.h"

#include <gtest/gtest.h>

namespace load {
namespace {

constexpr std::string_view kChunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
    "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";

TEST(Response, EverySplitOfAChunkedBody) {
  for (size_t cut = 0; cut <= kChunked.size(); ++cut) {
    Response response;
    ASSERT_TRUE(response.feed(kChunked.substr(0, cut))) << cut;
    EXPECT_EQ(response.complete(), cut == kChunked.size()) << cut;
    ASSERT_TRUE(response.feed(kChunked.substr(cut))) << cut;
    EXPECT_TRUE(response.complete());
    EXPECT_EQ(response.body(), "hello world");
  }
}

TEST(Response, SizedAndEmpty) {
  Response sized;
  EXPECT_TRUE(sized.feed("HTTP/1.1 202 Accepted\r\ncontent-length: 3\r\nConnection: close\r\n\r\nab"));
  EXPECT_FALSE(sized.complete());
  EXPECT_TRUE(sized.feed("c"));
  EXPECT_TRUE(sized.complete());
  EXPECT_EQ(sized.status(), 202);
  EXPECT_FALSE(sized.keep_alive());
  Response empty;
  EXPECT_TRUE(empty.feed("HTTP/1.1 204 No Content\r\n\r\n"));
  EXPECT_TRUE(empty.complete());
}

TEST(Response, Refused) {
  for (std::string_view bytes :
       {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", "HTTP/1.1 200 OK\r\nnot a field\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc"}) {
    Response response;
    EXPECT_FALSE(response.feed(bytes)) << bytes;
  }
}

TEST(FindId, FirstMember) {
  EXPECT_EQ(find_id(R"({"status":{},"id":"a-b","x":"id"})"), "a-b");
  EXPECT_EQ(find_id("{}"), "");
}

}  // namespace
}  // namespace load
