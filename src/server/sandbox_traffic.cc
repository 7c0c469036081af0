#include "server/sandbox_traffic.h"

namespace osb::server {

SandboxTraffic::Place::~Place() {
  if (counts_ == nullptr || --entry_->second > 0) return;
  counts_->erase(counts_->find(entry_->first));
}

std::optional<SandboxTraffic::Place> SandboxTraffic::enter(const std::string& id) {
  auto& entry = *counts_.try_emplace(id, 0).first;
  if (most_ > 0 && entry.second >= most_) return std::nullopt;
  return Place(counts_, entry);
}

}  // namespace osb::server
