#include "execd/http_date.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/strings.h"

namespace osb::execd {
namespace {

constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

std::string format_http_date(int64_t seconds_since_1970) {
  using namespace std::chrono;
  sys_seconds time{seconds(seconds_since_1970)};
  auto day = floor<days>(time);
  year_month_day date{day};
  hh_mm_ss clock{time - day};
  char text[40];
  std::snprintf(text, sizeof text, "%s, %02u %s %04d %02d:%02d:%02d GMT",
                kDays[weekday(day).c_encoding()].data(), static_cast<unsigned>(date.day()),
                kMonths[static_cast<unsigned>(date.month()) - 1].data(), static_cast<int>(date.year()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

std::optional<int64_t> parse_http_date(std::string_view text) {
  using namespace std::chrono;
  text = trim(text);
  if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT" || text[19] != ':' ||
      text[22] != ':') {
    return std::nullopt;
  }
  auto month_at = std::find(std::begin(kMonths), std::end(kMonths), text.substr(8, 3));
  auto d = parse_number<unsigned>(text.substr(5, 2)), y = parse_number<unsigned>(text.substr(12, 4)),
       h = parse_number<unsigned>(text.substr(17, 2)), m = parse_number<unsigned>(text.substr(20, 2)),
       s = parse_number<unsigned>(text.substr(23, 2));
  if (month_at == std::end(kMonths) || !d || !y || !h || !m || !s || *h > 23 || *m > 59 || *s > 60)
    return std::nullopt;
  year_month_day date{year(static_cast<int>(*y)), month(static_cast<unsigned>(month_at - kMonths) + 1),
                      day(*d)};
  if (!date.ok()) return std::nullopt;
  sys_seconds time = sys_days(date) + hours(*h) + minutes(*m) + seconds(*s);
  return time.time_since_epoch().count();
}

}  // namespace osb::execd
