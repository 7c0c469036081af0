#include "egress/request_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace osb::egress {
namespace {

using Kind = RequestFollower::Next::Kind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The hosts of all requests in what a client sends, whatever pieces it comes in; "!" for a refusal.
std::vector<std::string> hosts(std::string_view sent, size_t piece) {
  RequestFollower follower;
  std::vector<std::string> out;
  std::string held;
  while (true) {
    while (!held.empty()) {
      auto next = follower.next(held);
      if (next.kind == Kind::more) break;
      if (next.kind == Kind::refused) return out.push_back("!"), out;
      if (next.kind == Kind::head) out.push_back(next.host);
      EXPECT_GT(next.size, 0u);
      held.erase(0, next.size);
    }
    if (sent.empty()) return out;
    held.append(sent.substr(0, piece));
    sent.remove_prefix(std::min(piece, sent.size()));
  }
}

std::vector<std::string> hosts(std::string_view sent) {
  auto whole = hosts(sent, sent.size());
  for (size_t piece : {1, 2, 7}) EXPECT_EQ(hosts(sent, piece), whole) << piece;
  return whole;
}

TEST(RequestFollower, SeesEveryRequest) {
  EXPECT_THAT(hosts("GET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET /x HTTP/1.1\r\nHost: b.test:80\r\n\r\n"),
              ElementsAre("a.test", "b.test"));
  EXPECT_THAT(hosts("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nGET /"
                    "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n"),
              ElementsAre("a.test", "b.test"));
  EXPECT_THAT(hosts("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3\r\nGET\r\n10;x=y\r\n0123456789abcdef\r\n0\r\nTrailer: x\r\n\r\n"
                    "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n"),
              ElementsAre("a.test", "b.test"));
  EXPECT_THAT(hosts("GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n"), ElementsAre("a.test"));
  EXPECT_THAT(hosts("GET / HTTP/1.0\r\n\r\n"), ElementsAre(""));
  EXPECT_THAT(hosts("GET / HTTP/1.1\r\nHost: a.t"), IsEmpty());
}

TEST(RequestFollower, RefusesWhatServersReadDifferently) {
  for (std::string_view second : {
           "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: +5\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n",
           "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
           "GET / HTTP/1.1\nHost: a.test\n\n",
           "GET / HTTP/1.1\r\nHost: a.test\r\n X: folded\r\n\r\n",
           "GET / HTTP/1.1\r\n\r\n",
           "GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
           "GET / http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
           "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
           "\x16\x03\x01\x02",
           "\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
       }) {
    auto seen = hosts("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n" + std::string(second));
    ASSERT_FALSE(seen.empty());
    EXPECT_EQ(seen.back(), "!") << second;
  }
  EXPECT_THAT(hosts("GET /" + std::string(40'000, 'a')), ElementsAre("!"));
}

TEST(RequestFollower, OnlyTheFirstRequestOpensATunnel) {
  constexpr std::string_view kSocket =
      "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n";
  RequestFollower follower;
  EXPECT_EQ(follower.next(kSocket).tunnel_answer, "HTTP/1.1 101");
  EXPECT_EQ(follower.next(kSocket).tunnel_answer, "");
  EXPECT_EQ(RequestFollower()
                .next("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
                .tunnel_answer,
            "");
  EXPECT_EQ(RequestFollower().next("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n").tunnel_answer,
            "HTTP/1.1 200");
}

}  // namespace
}  // namespace osb::egress
