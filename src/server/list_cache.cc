#include "server/list_cache.h"

#include <algorithm>
#include <functional>

namespace osb::server {

const std::string* ListCache::find(std::string_view owner, std::string_view query,
                                   uint64_t generation) const {
  if (generation != generation_) return nullptr;
  for (const Page& page : pages_) {
    if (page.owner == owner && page.query == query) return &page.body;
  }
  return nullptr;
}

void ListCache::put(std::string_view owner, std::string_view query, uint64_t generation,
                    const std::string& page) {
  if (generation != generation_) {
    pages_.clear();
    asked_.clear();
  }
  generation_ = generation;
  if (page.size() > kMaxPageBytes) return;
  size_t asked = std::hash<std::string_view>()(owner) * 31 + std::hash<std::string_view>()(query);
  if (std::ranges::find(asked_, asked) == asked_.end()) {
    if (asked_.size() == kMaxAsked) asked_.clear();
    asked_.push_back(asked);
    return;
  }
  if (pages_.size() < kMaxPages) {
    pages_.push_back({std::string(owner), std::string(query), page});
    return;
  }
  pages_[next_++ % kMaxPages] = {std::string(owner), std::string(query), page};
}

}  // namespace osb::server
