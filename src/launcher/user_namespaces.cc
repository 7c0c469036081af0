#include "launcher/user_namespaces.h"

#include <algorithm>

#include "launcher/settings.h"
#include "sys/namespaces.h"
#include "sys/user_namespace.h"

namespace osb::launcher {
namespace {

// Few, because every descriptor held here is copied to each new process and closed there.
constexpr size_t kMost = 64;

}  // namespace

Result<int> UserNamespaces::get(uint32_t range, const IdRanges& ranges) {
  if (of_ == Of::sandbox) {
    // All have the same ids: only this keeps their process counts and keyrings apart.
    fresh_ = TRY(sys::create_user_namespace(sys::identity_map(sys::mapped_ids())));
    return fresh_.get();
  }
  auto found = by_range_.find(range);
  if (found != by_range_.end()) return found->second.get();
  if (by_range_.size() >= kMost) {
    // A sandbox that runs needs its own no more.
    auto in_use = std::find_if(by_range_.begin(), by_range_.end(),
                               [&](const auto& entry) { return ranges.is_taken(entry.first); });
    by_range_.erase(in_use != by_range_.end() ? in_use : by_range_.begin());
  }
  Fd made = TRY(sys::create_user_namespace(range, kIdsPerSandbox));
  return (by_range_[range] = std::move(made)).get();
}

}  // namespace osb::launcher
