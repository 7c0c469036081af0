#pragma once

// How much a sandbox may say to name servers. What leaves with a lookup is its name and its type, so new ones
// count: under a rule for everything below a zone whoever holds that zone reads every name that is asked. A
// program needs few; those that it asks for again are free.

#include <chrono>
#include <cstdint>
#include <string_view>
#include <unordered_set>

namespace osb::egress {

class LookupBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr double kAtOnce = 512, kPerSecond = 32;

  // Whether this one may be asked now.
  bool take(std::string_view normal_name, uint16_t type, Time now);

 private:
  static constexpr size_t kMostKnown = 512;  // of each generation

  double left_ = kAtOnce;
  Time since_{};
  // By what they hash to, with a key that nobody outside has: names that hash alike would be free.
  std::unordered_set<uint64_t> known_, known_before_;
};

}  // namespace osb::egress
