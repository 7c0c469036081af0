#include "egress/lookup_budget.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/ids.h"
#include "base/sha256.h"

namespace osb::egress {
namespace {

uint64_t hash_of(std::string_view name, uint16_t type) {
  static const std::string secret = new_hex_id();
  auto digest = hmac_sha256(secret, std::to_string(type) + " " + std::string(name));
  uint64_t out = 0;
  std::memcpy(&out, digest.data(), sizeof out);
  return out;
}

}  // namespace

bool LookupBudget::take(std::string_view normal_name, uint16_t type, Time now) {
  uint64_t key = hash_of(normal_name, type);
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
