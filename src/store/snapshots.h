#pragma once

// The rows of snapshots. A row is there before anything is copied (state Creating) and goes after everything
// is removed, so that after a kill -9 at any instruction the rows name all there can be. Those that are there
// only while something is made of them (snapshot_reason::kPassing) are nobody's: Scope::everybody() alone has
// them.

#include <optional>
#include <string_view>
#include <vector>

#include "sandbox/principal.h"
#include "sandbox/snapshot.h"
#include "store/database.h"

namespace osb::store {

using sandbox::Snapshot;

class Snapshots {
 public:
  static Result<Snapshots> open(Database& db);

  Result<void> insert(const Snapshot& row);  // refuses one without an owner
  Result<std::optional<Snapshot>> find(const sandbox::Scope& scope, std::string_view id);
  // False: there is no such row (any more).
  Result<bool> set_status(std::string_view id, const sandbox::SnapshotStatus& status);
  Result<bool> set_kept(const Snapshot& row);  // its status, base and size
  Result<bool> remove(std::string_view id);

  // Newest first, then by id, the last one first.
  Result<std::vector<Snapshot>> list(const sandbox::Scope& scope, const sandbox::SnapshotFilter& filter,
                                     int64_t limit, int64_t offset);
  Result<int64_t> count(const sandbox::Scope& scope, const sandbox::SnapshotFilter& filter);

 private:
  explicit Snapshots(Database& db) : db_(&db) {}

  Database* db_;
  std::optional<Statement> insert_, find_, status_, kept_, remove_;
};

}  // namespace osb::store
