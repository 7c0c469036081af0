#include "egress/learned.h"

#include <algorithm>

namespace osb::egress {
namespace {

constexpr std::chrono::seconds kGrace(60), kLeast(60), kLongest(360);

}  // namespace

void Learned::make_room(Time now) {
  if (entries_.size() < kMost) return;
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.back().until <= now; });
  if (entries_.size() < kMost) return;
  // Everything counts still: an eighth goes at once, those that would be over first, so that this is rare.
  std::vector<Time> ends;
  for (const auto& entry : entries_) ends.push_back(entry.second.back().until);
  auto eighth = ends.begin() + static_cast<ptrdiff_t>(ends.size() / 8);
  std::ranges::nth_element(ends, eighth);
  std::erase_if(entries_, [&, left = ends.size() / 8](const auto& entry) mutable {
    return left > 0 && entry.second.back().until <= *eighth && left-- > 0;
  });
}

void Learned::learn(const IpAddress& address, const std::string& name, uint32_t ttl, Time now) {
  auto lease = std::clamp<std::chrono::seconds>(std::chrono::seconds(ttl) + kGrace, kLeast, kLongest);
  if (!entries_.contains(address)) make_room(now);
  std::vector<Entry>& known = entries_[address];
  std::erase_if(known, [&](const Entry& entry) { return entry.name == name || entry.until <= now; });
  known.push_back({name, now + lease});
  // In the order of their ends, so that the last is the one that counts longest.
  std::ranges::sort(known, {}, &Entry::until);
  if (known.size() > kMostNames) known.erase(known.begin());
}

std::vector<std::string> Learned::names(const IpAddress& address, Time now) const {
  std::vector<std::string> out;
  auto found = entries_.find(address);
  if (found == entries_.end()) return out;
  for (auto entry = found->second.rbegin(); entry != found->second.rend(); ++entry) {
    if (entry->until > now) out.push_back(entry->name);
  }
  return out;
}

}  // namespace osb::egress
