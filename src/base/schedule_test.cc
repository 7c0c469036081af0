#include "base/schedule.h"

#include <gtest/gtest.h>

namespace osb {
namespace {

std::string next(const char* schedule, const char* now) {
  auto parsed = Schedule::parse(schedule);
  EXPECT_TRUE(parsed) << schedule << ": " << parsed.error().message;
  auto at = parsed ? parsed->next(*parse_time(now)) : std::nullopt;
  return at ? format_api_time(*at) : "never";
}

TEST(Schedule, TheNextTime) {
  const struct {
    const char *schedule, *now, *next;
  } kCases[] = {
      {"* * * * *", "2026-01-02T03:04:05Z", "2026-01-02T03:05:00Z"},
      {"* * * * *", "2026-01-02T03:04:00Z", "2026-01-02T03:05:00Z"},
      {"*/15 * * * *", "2026-01-02T03:46:00Z", "2026-01-02T04:00:00Z"},
      {"5/20 3 * * *", "2026-01-02T03:10:00Z", "2026-01-02T03:25:00Z"},
      {"0 0 1 1 *", "2026-01-02T00:00:00Z", "2027-01-01T00:00:00Z"},
      {"30 8-18/2 * * 1-5", "2026-01-02T18:31:00Z", "2026-01-05T08:30:00Z"},  // a Friday evening
      {"0 12 * * 7", "2026-01-02T00:00:00Z", "2026-01-04T12:00:00Z"},
      {"0 12 * * 0", "2026-01-02T00:00:00Z", "2026-01-04T12:00:00Z"},
      {"0 0 13 * 5", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z"},  // the 13th or a Friday
      {"0 0 29 2 *", "2026-01-02T00:00:00Z", "2028-02-29T00:00:00Z"},
      {"0 0 31 2 *", "2026-01-02T00:00:00Z", "never"},
      {" 1,2,50   *  * * * ", "2026-01-02T00:02:00Z", "2026-01-02T00:50:00Z"},
      {"@every 90s", "2026-01-02T00:00:00Z", "2026-01-02T00:01:30Z"},
      {"@every 1h30m5s", "2026-01-02T00:00:00Z", "2026-01-02T01:30:05Z"},
  };
  for (const auto& c : kCases) EXPECT_EQ(next(c.schedule, c.now), c.next) << c.schedule;
}

TEST(Schedule, WhatIsNone) {
  for (const char* text : {"",
                           "*",
                           "* * * *",
                           "* * * * * *",
                           "60 * * * *",
                           "* 24 * * *",
                           "* * 0 * *",
                           "* * 32 * *",
                           "* * * 13 *",
                           "* * * * 8",
                           "-1 * * * *",
                           "5-1 * * * *",
                           "*/0 * * * *",
                           "*/61 * * * *",
                           "a * * * *",
                           "1, * * * *",
                           "1-2-3 * * * *",
                           "1/2/3 * * * *",
                           "@hourly",
                           "@every",
                           "@every 5",
                           "@every 0s",
                           "@every 500ms",
                           "@every -5s",
                           "@every 1.5h",
                           "@every 99999999999999999999h",
                           "@every 9000h",
                           "@every s"}) {
    auto parsed = Schedule::parse(text);
    EXPECT_FALSE(parsed) << text;
  }
  EXPECT_FALSE(Schedule::parse(std::string(10000, ' ') + "* * * * *" + std::string(10000, '*')));
}

}  // namespace
}  // namespace osb
