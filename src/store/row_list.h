#pragma once

// The rows of sandboxes in the order of lists, in memory: a filter looks at all of them without reading any.
// Whoever watches a busy server asks for pages between changes, and a search in SQLite decodes the metadata
// of every row for each.
//
// It is a copy of what the table has. The owner names every row that may have changed (touch), and those are
// read again before the next look; nothing else can change. It starts empty: load() fills it from the table,
// after a start and whenever it was dropped. Bounded; belongs to one loop.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sandbox/sandbox.h"

namespace osb::store {

class RowList {
 public:
  // Beyond this many rows there is no list, and SQLite is asked.
  static constexpr size_t kMaxRows = 16384;
  // So many changes without a look, and reading all rows again is no more work.
  static constexpr size_t kMaxTouched = 1024;

  bool loaded() const { return loaded_; }
  void load(std::vector<sandbox::SandboxPtr> rows);
  void drop();

  void touch(std::string_view id);
  // Those that were touched since, for whoever reads them again and puts or removes each.
  std::vector<std::string> take_touched();
  void put(sandbox::SandboxPtr row);
  void remove(const std::string& id);

  struct Found {
    std::vector<sandbox::SandboxPtr> rows;  // newest first
    int64_t total = 0;
  };
  Found find(const sandbox::Scope& scope, const sandbox::Filter& filter, int64_t limit, int64_t offset) const;

 private:
  // What most rows are refused by stands side by side; the row itself is looked at only when that fits.
  struct Entry {
    int64_t created;
    uint64_t owner;   // hash
    uint64_t labels;  // a bit for each pair of its metadata
    sandbox::State state;
    sandbox::SandboxPtr row;
  };
  static Entry entry_of(sandbox::SandboxPtr row);
  static bool is_before(const Entry& a, const Entry& b);
  size_t place_of(std::string_view id, int64_t created) const;

  bool loaded_ = false;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, int64_t> created_;  // by id: where it stands
  std::vector<std::string> touched_;
};

}  // namespace osb::store
