#include "egress/lookup_budget.h"

#include <algorithm>
#include <functional>

namespace osb::egress {

bool LookupBudget::take(std::string_view normal_name, uint16_t type, Time now) {
  uint64_t key = std::hash<std::string_view>()(normal_name) * 31 + type;
  if (known_.contains(key)) return true;
  if (!known_before_.contains(key)) {
    if (since_ != Time())
      left_ = std::min(kAtOnce, left_ + kPerSecond * std::chrono::duration<double>(now - since_).count());
    since_ = now;
    if (left_ < 1) return false;
    left_ -= 1;
  }
  // What was asked in the generation before stays known by being asked again.
  if (known_.size() >= kMostKnown) {
    known_before_ = std::move(known_);
    known_.clear();
  }
  known_.insert(key);
  return true;
}

}  // namespace osb::egress
