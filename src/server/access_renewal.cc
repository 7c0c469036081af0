#include "server/access_renewal.h"

#include "base/log.h"
#include "base/strings.h"
#include "sandbox/create_request.h"

namespace osb::server {

std::optional<std::chrono::seconds> renewal_of(const sandbox::Sandbox& row) {
  if (row.extensions.empty() || !row.expires) return std::nullopt;
  auto found = row.extensions.find(sandbox::kRenewExtension);
  if (found == row.extensions.end()) return std::nullopt;
  auto seconds = parse_number<int64_t>(found->second);
  if (!seconds || *seconds <= 0) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

// What was renewed long ago is renewed anew, whether it is known or not.
bool AccessRenewal::has_room(Time now) {
  if (renewed_.size() < kMaxKept) return true;
  std::erase_if(renewed_, [&](const auto& entry) { return now - entry.second >= interval_; });
  return renewed_.size() < kMaxKept;
}

bool AccessRenewal::rests(const std::string& id) const {
  auto known = renewed_.find(id);
  return known != renewed_.end() && std::chrono::steady_clock::now() - known->second < interval_;
}

void AccessRenewal::accessed(const sandbox::Sandbox& row) {
  auto by = renewal_of(row);
  if (!by) return;
  Time now = std::chrono::steady_clock::now();
  if (rests(row.id)) return;
  if (!renewed_.contains(row.id) && !has_room(now)) return;
  renewed_[row.id] = now;
  tasks_.spawn(renew(row.id, *by));
}

Task<> AccessRenewal::renew(std::string id, std::chrono::seconds by) {
  auto renewed = co_await lifecycle_.extend(id, by);
  if (renewed) co_return;
  renewed_.erase(id);
  log::debug("not renewed by use", {{"id", id}, {"error", renewed.error().message}});
}

}  // namespace osb::server
