#include "base/schedule.h"

#include "base/strings.h"

namespace osb {
namespace {

using namespace std::chrono;

constexpr seconds kLongestEvery = hours(24 * 365);
constexpr size_t kMaxText = 256;

std::unexpected<Error> wrong(std::string_view why) {
  return fail(Code::invalid_argument,
              std::string(why) + "; write five fields of cron, as in \"*/5 * * * *\", or \"@every 30s\"");
}

// "1h30m", "90s", "500ms" is too short. Go's notation without fractions.
Result<seconds> parse_every(std::string_view text) {
  seconds total{0};
  if (text.empty()) return wrong("@every needs a duration");
  while (!text.empty()) {
    size_t digits = text.find_first_not_of("0123456789");
    auto number =
        digits == 0 || digits == text.npos ? std::nullopt : parse_number<int64_t>(text.substr(0, digits));
    if (!number || *number > kLongestEvery.count()) return wrong("the duration of @every cannot be read");
    char unit = text[digits];
    if (unit != 'h' && unit != 'm' && unit != 's') return wrong("the units of @every are h, m and s");
    total += seconds(*number * (unit == 'h' ? 3600 : unit == 'm' ? 60 : 1));
    if (total > kLongestEvery) return wrong("@every is longer than a year");
    text.remove_prefix(digits + 1);
  }
  if (total < seconds(1)) return wrong("@every is shorter than a second");
  return total;
}

struct Bounds {
  const char* name;
  int low, high;
};

// "*", "5", "1-5", "*/15", "10-40/10", and several of them with commas between. A bit for each value.
Result<uint64_t> parse_field(std::string_view text, Bounds bounds) {
  uint64_t out = 0;
  for (std::string_view part : split(text, ',')) {
    int low = bounds.low, high = bounds.high, step = 1;
    std::string_view range = part.substr(0, part.find('/'));
    bool stepped = range.size() < part.size();
    if (stepped) {
      auto number = parse_number<int>(part.substr(range.size() + 1));
      if (!number || *number < 1 || *number > bounds.high)
        return wrong(std::string("the step of the ") + bounds.name + " cannot be read");
      step = *number;
    }
    if (range != "*") {
      size_t dash = range.find('-');
      auto first = parse_number<int>(range.substr(0, dash));
      auto last = dash == range.npos ? first : parse_number<int>(range.substr(dash + 1));
      // "5/15" means from 5 on.
      if (dash == range.npos && stepped) last = bounds.high;
      if (!first || !last || *first < bounds.low || *last > bounds.high || *first > *last) {
        return wrong(std::string("the ") + bounds.name + " must be from " + std::to_string(bounds.low) +
                     " to " + std::to_string(bounds.high));
      }
      low = *first;
      high = *last;
    }
    for (int value = low; value <= high; value += step) out |= uint64_t{1} << value;
  }
  return out;
}

}  // namespace

Result<Schedule> Schedule::parse(std::string_view text) {
  text = trim(text);
  if (text.size() > kMaxText) return wrong("the schedule is too long");
  Schedule out;
  if (constexpr std::string_view kEvery = "@every"; text.starts_with(kEvery)) {
    out.every_ = TRY(parse_every(trim(text.substr(kEvery.size()))));
    return out;
  }
  std::vector<std::string_view> fields;
  for (std::string_view field : split(text, ' ')) {
    if (!field.empty()) fields.push_back(field);
  }
  if (fields.size() != 5) return wrong("the schedule does not have five fields");
  out.minutes_ = TRY(parse_field(fields[0], {"minute", 0, 59}));
  out.hours_ = TRY(parse_field(fields[1], {"hour", 0, 23}));
  out.days_ = TRY(parse_field(fields[2], {"day of the month", 1, 31}));
  out.months_ = TRY(parse_field(fields[3], {"month", 1, 12}));
  uint64_t weekdays = TRY(parse_field(fields[4], {"day of the week", 0, 7}));
  out.weekdays_ = weekdays | weekdays >> 7;  // Sunday has two numbers
  out.any_day_ = fields[2].starts_with('*');
  out.any_weekday_ = fields[4].starts_with('*');
  return out;
}

bool Schedule::matches_day(sys_days day) const {
  year_month_day date(day);
  if (!months_[static_cast<unsigned>(date.month())]) return false;
  bool of_month = days_[static_cast<unsigned>(date.day())];
  bool of_week = weekdays_[weekday(day).c_encoding()];
  return any_day_ || any_weekday_ ? of_month && of_week : of_month || of_week;
}

std::optional<WallTime> Schedule::next(WallTime now) const {
  if (every_) return now + *every_;
  constexpr int kDaysAhead = 366 * 8 + 1;  // a 29th of February can be eight years away
  sys_days first = floor<days>(now);
  for (int ahead = 0; ahead < kDaysAhead; ++ahead) {
    sys_days day = first + days(ahead);
    if (!matches_day(day)) continue;
    for (int minute = 0; minute < 24 * 60; ++minute) {
      if (!hours_[static_cast<size_t>(minute / 60)] || !minutes_[static_cast<size_t>(minute % 60)]) continue;
      WallTime at = day + minutes(minute);
      if (at > now) return at;
    }
  }
  return std::nullopt;
}

}  // namespace osb
