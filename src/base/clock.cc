#include "base/clock.h"

#include <algorithm>
#include <cstdio>

#include "base/strings.h"

namespace osb {
namespace {

struct SystemClock : Clock {
  WallTime now() const override { return wall_now(); }
};

// Exactly `count` digits at `pos`, or -1.
int digits_at(std::string_view s, size_t pos, size_t count) {
  if (pos + count > s.size()) return -1;
  int value = 0;
  for (size_t i = pos; i < pos + count; ++i) {
    if (s[i] < '0' || s[i] > '9') return -1;
    value = value * 10 + (s[i] - '0');
  }
  return value;
}

}  // namespace

WallTime wall_now() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

int64_t epoch_ms() { return std::chrono::duration_cast<milliseconds>(wall_now().time_since_epoch()).count(); }

const Clock& Clock::system() {
  static const SystemClock clock;
  return clock;
}

std::string format_time(WallTime time, int digits) {
  using namespace std::chrono;
  auto day = floor<days>(time);
  year_month_day date{day};
  hh_mm_ss clock{time - day};
  char buffer[64];
  int n = std::snprintf(buffer, sizeof buffer, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                        static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                        static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                        static_cast<int>(clock.seconds().count()));
  std::string out(buffer, static_cast<size_t>(n));
  if (digits > 0) {
    std::snprintf(buffer, sizeof buffer, ".%06d", static_cast<int>(clock.subseconds().count()));
    out.append(buffer, static_cast<size_t>(std::min(digits, 6)) + 1);
  }
  return out + "Z";
}

std::string format_api_time(WallTime time) {
  return format_time(time, time.time_since_epoch().count() % 1'000'000 ? 6 : 0);
}

Result<WallTime> parse_time(std::string_view text) {
  using namespace std::chrono;
  auto bad = [&] { return fail(Code::invalid_argument, "not an RFC 3339 date-time"); };
  std::string_view s = text;
  int y = digits_at(s, 0, 4), mo = digits_at(s, 5, 2), d = digits_at(s, 8, 2);
  int h = digits_at(s, 11, 2), mi = digits_at(s, 14, 2), sec = digits_at(s, 17, 2);
  if (y < 0 || mo < 0 || d < 0 || h < 0 || mi < 0 || sec < 0) return bad();
  if (s[4] != '-' || s[7] != '-' || s[13] != ':' || s[16] != ':') return bad();
  if (s[10] != 'T' && s[10] != 't' && s[10] != ' ') return bad();
  year_month_day date{year(y), month(static_cast<unsigned>(mo)), day(static_cast<unsigned>(d))};
  if (!date.ok() || h > 23 || mi > 59 || sec > 59) return bad();
  size_t pos = 19;
  int64_t micros = 0;
  if (pos < s.size() && s[pos] == '.') {
    size_t start = ++pos;
    int64_t scale = 100'000;
    while (pos < s.size() && s[pos] >= '0' && s[pos] <= '9') {
      micros += (s[pos] - '0') * scale;
      scale /= 10;
      ++pos;
    }
    if (pos == start || pos - start > 9) return bad();
  }
  minutes offset{0};
  if (pos < s.size()) {
    char zone = s[pos];
    if ((zone == 'Z' || zone == 'z') && pos + 1 == s.size()) {
    } else if (zone == '+' || zone == '-') {
      int oh = digits_at(s, pos + 1, 2);
      bool colon = pos + 3 < s.size() && s[pos + 3] == ':';
      int om = digits_at(s, pos + (colon ? 4 : 3), 2);
      if (oh < 0 || om < 0 || oh > 23 || om > 59 || s.size() != pos + (colon ? 6 : 5)) return bad();
      offset = hours(oh) + minutes(om);
      if (zone == '-') offset = -offset;
    } else {
      return bad();
    }
  }
  WallTime time = sys_days(date) + hours(h) + minutes(mi) + seconds(sec) + microseconds(micros) - offset;
  // An offset can lead out of the four-digit years; such a time could not be printed again.
  constexpr WallTime kFirst = sys_days(year(0) / 1 / 1), kEnd = sys_days(year(10000) / 1 / 1);
  if (time < kFirst || time >= kEnd) return bad();
  return time;
}

}  // namespace osb
