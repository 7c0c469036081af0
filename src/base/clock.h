#pragma once

// Wall-clock instants with microseconds, as the wire carries them, and a clock that tests can turn by hand.

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb {

using WallTime = std::chrono::sys_time<std::chrono::microseconds>;
using std::chrono::milliseconds;
using std::chrono::seconds;

WallTime wall_now();
int64_t epoch_ms();

// RFC 3339 in UTC with Z and `digits` fractional digits (0 to 6).
std::string format_time(WallTime time, int digits);
// As the API prints: six fractional digits, or none when the microseconds are zero.
std::string format_api_time(WallTime time);
// RFC 3339 with any offset, 'T' or a space, up to nine fractional digits (cut to six); no zone means UTC.
Result<WallTime> parse_time(std::string_view text);

// Where "now" comes from. Thread-compatible; the system clock is stateless.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime now() const = 0;
  static const Clock& system();
};

class ManualClock : public Clock {
 public:
  explicit ManualClock(WallTime start) : now_(start) {}
  WallTime now() const override { return now_; }
  void advance(std::chrono::microseconds by) { now_ += by; }

 private:
  WallTime now_;
};

}  // namespace osb
