#include "execd/http_date.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

TEST(HttpDate, round_trip) {
  EXPECT_EQ(format_http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_EQ(format_http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(parse_http_date(format_http_date(1'709'210'096)), 1'709'210'096);
}

TEST(HttpDate, rejects) {
  for (const char* text :
       {"", "Sun, 06 Nov 1994 08:49:37", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 06 Nov 1994 08-49-37 GMT",
        "\"etag-of-29-characters-exact\""}) {
    EXPECT_FALSE(parse_http_date(text)) << text;
  }
}

}  // namespace
}  // namespace osb::execd
