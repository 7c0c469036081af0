#pragma once

// The rows of sandboxes. A row is written before anything of its sandbox exists (state Pending, no identity)
// and removed after everything of it is gone, so that after a kill -9 at any instruction the rows name all
// there can be.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sandbox/sandbox.h"
#include "store/database.h"
#include "store/row_list.h"

namespace osb::store {

using sandbox::Filter;
using sandbox::Reason;
using sandbox::Sandbox;
using sandbox::SandboxPtr;
using sandbox::Scope;
using sandbox::State;
using sandbox::Status;

// What is known about a row beyond what the disk has; see backlog.h.
struct Held {
  std::optional<Status> status = {};
  std::optional<WallTime> expires = {};
  bool removed = false;
};

// Rows that were read are kept until they change: all writes of this process's tables go through here, and no
// other process writes.
//
// Lists and maps of strings are JSON texts in their columns: what SQLite itself can search. They are decoded
// when a row is read; nobody above sees or prints such a text.
//
// A row that cannot be read as it is spoils nothing: a state that is no word of ours reads as Failed with the
// reason DAMAGED, a list or map that cannot be decoded as an empty one. Such rows are named in damaged(), can
// be deleted, and expire.
class Sandboxes {
 public:
  static constexpr size_t kMaxKept = 16384;
  static Result<Sandboxes> open(Database& db);

  Result<void> insert(const Sandbox& row);                           // refuses one without an owner
  Result<SandboxPtr> find(const Scope& scope, std::string_view id);  // null: there is none in this scope
  // False: there is no such row (any more).
  Result<bool> set_identity(std::string_view id, std::string_view identity, const Status& status);
  Result<bool> replace(std::string_view id, std::string_view handle, std::string_view identity,
                       const Status& status);
  Result<bool> set_status(std::string_view id, const Status& status);
  Result<bool> set_expiry(std::string_view id, WallTime expires);
  Result<bool> set_metadata(std::string_view id, const sandbox::Metadata& metadata);
  Result<bool> remove(std::string_view id);

  // Of one that was just stored: whoever asks for it next finds it in memory.
  void keep(const Sandbox& row);

  // A page of a list, newest first, and how many there are in all.
  Result<RowList::Found> page(const Scope& scope, const Filter& filter, int64_t limit, int64_t offset);
  // The same from the disk. Newest first.
  Result<void> list(const Scope& scope, const Filter& filter, int64_t limit, int64_t offset,
                    const std::function<void(const SandboxPtr&)>& visit);
  Result<int64_t> count(const Scope& scope, const Filter& filter);

  Result<std::vector<std::string>> due(WallTime now, int64_t limit);  // ids, the longest overdue first
  Result<std::optional<WallTime>> next_expiry();
  // The id of one that has not ended and was made from this image.
  Result<std::optional<std::string>> made_from(std::string_view image);

  // How changes that wait for the disk are written, before anything else is written to their row.
  void on_earlier_changes(std::function<Result<void>(std::string_view)> settle) {
    settle_ = std::move(settle);
  }

  // Ids of rows that were damaged when they were read last, and what is wrong with each.
  const std::map<std::string, std::string>& damaged() const { return damaged_; }

  // Moves with every change: what was made from rows is valid as long as this stays the same.
  uint64_t generation() const { return generation_; }

 private:
  friend class Backlog;
  // Readers see `held` on top of the row, until let_go().
  void hold(std::string_view id, Held held);
  void let_go(std::string_view id);
  Result<bool> write_held(const std::string& id);  // true: the row is removed
  // Earlier changes of this row come first.
  Result<void> settle_first(std::string_view id);

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  Sandboxes(Database& db) : db_(&db) {}
  // Every change of a row, tried or done, comes through here.
  void touch(std::string_view id);
  Result<bool> change(std::string_view id, Query query);
  bool refresh_rows();
  Result<bool> load_rows();
  Result<SandboxPtr> read(std::string_view id);
  Result<SandboxPtr> find_any(std::string_view id);
  Result<SandboxPtr> find_stored(std::string_view id);
  SandboxPtr with_held(SandboxPtr row, const Held& held) const;
  Result<std::vector<SandboxPtr>> list_with_held(const Scope& scope, const Filter& filter);
  void note_damage(const std::string& id, std::string damage);

  Database* db_;
  std::optional<Statement> insert_, find_, identity_, status_, expiry_, metadata_, remove_, list_, count_,
      due_, next_, replace_, made_from_;
  std::unordered_map<std::string, SandboxPtr, Hash, std::equal_to<>> kept_;
  std::map<std::string, Held, std::less<>> held_;  // empty on a healthy disk
  std::function<Result<void>(std::string_view)> settle_ = [](std::string_view) { return Result<void>(); };
  std::map<std::string, std::string> damaged_;
  RowList rows_;
  uint64_t generation_ = 0;
};

}  // namespace osb::store
