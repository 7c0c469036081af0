#include "base/clock.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace osb {
namespace {

using std::chrono::microseconds;

WallTime at(int64_t micros) { return WallTime(microseconds(micros)); }

TEST(FormatTime, HasUtcAndTheAskedDigits) {
  WallTime time = at(1'767'323'045'678'901);
  EXPECT_EQ(format_time(time, 0), "2026-01-02T03:04:05Z");
  EXPECT_EQ(format_time(time, 1), "2026-01-02T03:04:05.6Z");
  EXPECT_EQ(format_time(time, 3), "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(format_time(time, 6), "2026-01-02T03:04:05.678901Z");
  EXPECT_EQ(format_time(time, 9), "2026-01-02T03:04:05.678901Z");
  EXPECT_EQ(format_time(at(0), 3), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_time(at(-1), 6), "1969-12-31T23:59:59.999999Z");
}

TEST(FormatTime, ApiTimesHaveSixDigitsOrNone) {
  EXPECT_EQ(format_api_time(at(1'767'323'045'678'901)), "2026-01-02T03:04:05.678901Z");
  EXPECT_EQ(format_api_time(at(1'767'323'045'000'001)), "2026-01-02T03:04:05.000001Z");
  EXPECT_EQ(format_api_time(at(1'767'323'045'000'000)), "2026-01-02T03:04:05Z");
}

TEST(ParseTime, Accepts) {
  struct Case {
    std::string_view text, utc;
  };
  const Case cases[] = {
      {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"},
      {"2026-01-02t03:04:05z", "2026-01-02T03:04:05Z"},
      {"2026-01-02 03:04:05", "2026-01-02T03:04:05Z"},
      {"2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.500000Z"},
      {"2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901Z"},
      {"2026-01-02T03:04:05.678901999Z", "2026-01-02T03:04:05.678901Z"},  // Go and Java send nanoseconds
      {"2026-01-02T03:04:05.000000001+00:00", "2026-01-02T03:04:05Z"},
      {"2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"},
      {"2026-01-02T03:04:05-0530", "2026-01-02T08:34:05Z"},
      {"2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05Z"},
      {"2025-12-31T23:59:59.999999-23:59", "2026-01-01T23:58:59.999999Z"},
      {"2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"},
      {"2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"},
      {"1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000Z"},
      {"0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
      {"9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999Z"},
  };
  for (const Case& c : cases) {
    auto time = parse_time(c.text);
    ASSERT_TRUE(time) << c.text;
    EXPECT_EQ(format_api_time(*time), c.utc) << c.text;
  }
}

TEST(ParseTime, Refuses) {
  for (std::string_view text : {
           "",
           " ",
           "now",
           "1767323045",
           "2026",
           "2026-01-02",
           "2026-01-02Z",
           "2026-01-02T",
           "2026-01-02T03",
           "2026-01-02T03:04",
           "2026-01-02T03:04Z",
           "2026-01-02T03:04:05 ",
           " 2026-01-02T03:04:05Z",
           "2026-01-02T03:04:05Z ",
           "2026-01-02T03:04:05ZZ",
           "2026-01-02T03:04:05X",
           "2026-01-02_03:04:05Z",
           "2026-01-02  03:04:05Z",
           "2026/01/02T03:04:05Z",
           "2026-01-02T03.04.05Z",
           "20260102T030405Z",
           "26-01-02T03:04:05Z",
           "02026-01-02T03:04:05Z",
           "+2026-01-02T03:04:05Z",
           "-026-01-02T03:04:05Z",
           "2026-1-02T03:04:05Z",
           "2026-00-02T03:04:05Z",
           "2026-13-02T03:04:05Z",
           "2026-01-00T03:04:05Z",
           "2026-01-32T03:04:05Z",
           "2026-04-31T03:04:05Z",
           "2026-02-29T03:04:05Z",
           "1900-02-29T03:04:05Z",
           "2026-01-02T24:00:00Z",
           "2026-01-02T03:60:05Z",
           "2026-01-02T03:04:60Z",
           "2026-01-02T-3:04:05Z",
           "2026-01-02T03:+4:05Z",
           "2026-01-02T03:04:05.Z",
           "2026-01-02T03:04:05.",
           "2026-01-02T03:04:05,5Z",
           "2026-01-02T03:04:05.1234567890Z",
           "2026-01-02T03:04:05.-5Z",
           "2026-01-02T03:04:05.5.5Z",
           "2026-01-02T03:04:05+",
           "2026-01-02T03:04:05+2",
           "2026-01-02T03:04:05+02",
           "2026-01-02T03:04:05+02:",
           "2026-01-02T03:04:05+02:0",
           "2026-01-02T03:04:05+020",
           "2026-01-02T03:04:05+02:000",
           "2026-01-02T03:04:05+02:00Z",
           "2026-01-02T03:04:05Z+02:00",
           "2026-01-02T03:04:05+24:00",
           "2026-01-02T03:04:05+02:60",
           "2026-01-02T03:04:05+-2:00",
           "2026-01-02T03:04:05 +02:00",
           "9999-12-31T23:59:59-00:01",
           "0000-01-01T00:00:00+00:01",
           "2026-01-02T03:04:05\xc2\xb1"
           "02:00",
       }) {
    auto time = parse_time(text);
    ASSERT_FALSE(time) << text;
    EXPECT_EQ(time.error().code, Code::invalid_argument);
  }
  EXPECT_FALSE(parse_time({"2026-01-02T03:04:05\0", 20}));
  EXPECT_FALSE(
      parse_time({"2026\0"
                  "01-02T03:04:05Z",
                  20}));
}

TEST(ParseTime, ReadsWhatIsFormatted) {
  for (int64_t micros = -5'000'000'000'000'000; micros < 200'000'000'000'000'000;
       micros += 1'234'567'890'123'457) {
    EXPECT_EQ(parse_time(format_time(at(micros), 6)).value(), at(micros));
    EXPECT_EQ(parse_time(format_api_time(at(micros))).value(), at(micros));
  }
}

TEST(Clock, ManualClockStandsStillUntilTurned) {
  ManualClock clock(at(10));
  EXPECT_EQ(clock.now(), at(10));
  EXPECT_EQ(clock.now(), at(10));
  clock.advance(seconds(2));
  EXPECT_EQ(clock.now(), at(2'000'010));
}

TEST(Clock, SystemClockIsTheWallClock) {
  WallTime before = wall_now();
  WallTime now = Clock::system().now();
  EXPECT_LE(before, now);
  EXPECT_LE(now - before, seconds(60));
  int64_t now_ms = now.time_since_epoch().count() / 1000;
  EXPECT_LE(std::abs(epoch_ms() - now_ms), 60'000);
}

}  // namespace
}  // namespace osb
