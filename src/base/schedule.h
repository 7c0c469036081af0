#pragma once

// When something is to be done again and again: five fields of cron in UTC ("*/15 8-18 * * 1-5": minute,
// hour, day of the month, month, day of the week with 0 and 7 for Sunday; lists, ranges and steps; both days
// given mean either of them), or "@every 1h30m".

#include <bitset>
#include <chrono>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace osb {

class Schedule {
 public:
  static Result<Schedule> parse(std::string_view text);

  // The next time after `now`; nothing when there is none (the 31st of February).
  std::optional<WallTime> next(WallTime now) const;

 private:
  bool matches_day(std::chrono::sys_days day) const;

  std::optional<std::chrono::seconds> every_;
  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;  // from 1
  std::bitset<13> months_;
  std::bitset<7> weekdays_;
  bool any_day_ = true, any_weekday_ = true;
};

}  // namespace osb
