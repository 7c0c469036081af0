#include "store/row_list.h"

#include <algorithm>

namespace osb::store {

using sandbox::SandboxPtr;

namespace {

uint64_t hash_of(std::string_view text) { return std::hash<std::string_view>()(text); }

uint64_t label_bit(std::string_view key, std::string_view value) {
  return uint64_t{1} << ((hash_of(key) * 31 + hash_of(value)) >> 58);
}

bool has_all(const sandbox::Metadata& metadata, const sandbox::Filter& filter) {
  return std::ranges::all_of(filter.metadata, [&](const auto& pair) {
    auto found = metadata.find(pair.first);
    return found != metadata.end() && found->second == pair.second;
  });
}

}  // namespace

RowList::Entry RowList::entry_of(SandboxPtr row) {
  Entry entry{.created = row->created.time_since_epoch().count(),
              .owner = hash_of(row->owner),
              .labels = 0,
              .state = row->status.state,
              .row = nullptr};
  for (const auto& [key, value] : row->metadata) entry.labels |= label_bit(key, value);
  entry.row = std::move(row);
  return entry;
}

// Newest first; of the same moment the greater id.
bool RowList::is_before(const Entry& a, const Entry& b) {
  return a.created != b.created ? a.created > b.created : a.row->id > b.row->id;
}

void RowList::load(std::vector<SandboxPtr> rows) {
  drop();
  entries_.reserve(rows.size());
  for (SandboxPtr& row : rows) {
    created_.emplace(row->id, row->created.time_since_epoch().count());
    entries_.push_back(entry_of(std::move(row)));
  }
  std::ranges::sort(entries_, is_before);
  loaded_ = true;
}

void RowList::drop() {
  loaded_ = false;
  entries_.clear();
  created_.clear();
  touched_.clear();
}

void RowList::touch(std::string_view id) {
  if (!loaded_) return;
  if (touched_.size() >= kMaxTouched) return drop();
  touched_.emplace_back(id);
}

std::vector<std::string> RowList::take_touched() {
  std::ranges::sort(touched_);
  auto repeated = std::ranges::unique(touched_);
  touched_.erase(repeated.begin(), repeated.end());
  return std::exchange(touched_, {});
}

size_t RowList::place_of(std::string_view id, int64_t created) const {
  auto at = std::ranges::partition_point(entries_, [&](const Entry& entry) {
    return entry.created != created ? entry.created > created : entry.row->id > id;
  });
  return static_cast<size_t>(at - entries_.begin());
}

void RowList::put(SandboxPtr row) {
  Entry entry = entry_of(std::move(row));
  auto known = created_.find(entry.row->id);
  if (known != created_.end() && known->second == entry.created) {
    entries_[place_of(entry.row->id, entry.created)] = std::move(entry);
    return;
  }
  remove(entry.row->id);  // another one of that name
  if (entries_.size() >= kMaxRows) return drop();
  created_.emplace(entry.row->id, entry.created);
  size_t at = place_of(entry.row->id, entry.created);
  entries_.insert(entries_.begin() + static_cast<ptrdiff_t>(at), std::move(entry));
}

void RowList::remove(const std::string& id) {
  auto known = created_.find(id);
  if (known == created_.end()) return;
  entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(place_of(id, known->second)));
  created_.erase(known);
}

RowList::Found RowList::find(const sandbox::Scope& scope, const sandbox::Filter& filter, int64_t limit,
                             int64_t offset) const {
  Found found;
  uint64_t owner = scope.owner() ? hash_of(*scope.owner()) : 0, labels = 0;
  for (const auto& [key, value] : filter.metadata) labels |= label_bit(key, value);
  for (const Entry& entry : entries_) {
    if (scope.owner() && entry.owner != owner) continue;
    if ((entry.labels & labels) != labels) continue;
    if (filter.states && std::ranges::find(*filter.states, entry.state) == filter.states->end()) continue;
    // Hashes only tell what does not fit.
    if (scope.owner() && entry.row->owner != *scope.owner()) continue;
    if (!has_all(entry.row->metadata, filter)) continue;
    if (found.total++ < offset) continue;
    if (limit < 0 || found.rows.size() < static_cast<size_t>(limit)) found.rows.push_back(entry.row);
  }
  return found;
}

}  // namespace osb::store
