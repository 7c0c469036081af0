#pragma once

// What is stored about sandboxes, as the rest of the service sees it: calls that may take their time, values
// of src/sandbox, and a scope for everything that is read for somebody. Which database there is, and whether
// it answers at once, is the implementation's business (sqlite_repository.h is the first).
//
// Calls about one sandbox take effect in the order in which they were begun. A call that is cancelled may or
// may not have taken effect. Changes name a sandbox by its id alone: ids are unique among all owners, an
// owner never changes, and whoever may change a sandbox has found it in their scope.
//
// What has happened counts, whether or not the disk takes it: note(). What has not happened yet (a new
// sandbox, another expiry) is refused instead.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/task.h"
#include "sandbox/pool.h"
#include "sandbox/sandbox.h"
#include "sandbox/snapshot.h"
#include "store/change.h"
#include "store/create_keys.h"
#include "store/events_behind.h"

namespace osb::store {

using io::Task;
using sandbox::Scope;

struct Range {
  int64_t limit = 20, offset = 0;
};

// Some of the sandboxes that match, newest first, and how many match.
struct Page {
  std::vector<sandbox::SandboxPtr> sandboxes = {};
  int64_t total = 0;
};

struct SnapshotPage {
  std::vector<sandbox::Snapshot> snapshots = {};
  int64_t total = 0;
};

// All that could be read.
struct Everything {
  std::vector<sandbox::SandboxPtr> sandboxes = {};
  std::optional<Error> error = {};  // why there may be more
};

class Repository {
 public:
  virtual ~Repository() = default;

  // Reading. Null: there is none in this scope.
  virtual Task<Result<sandbox::SandboxPtr>> find(Scope scope, std::string id) = 0;
  // The same when it is at hand, without a wait. Null says nothing: ask find().
  virtual sandbox::SandboxPtr at_hand(const Scope& scope, std::string_view id) = 0;
  virtual Task<Result<Page>> page(Scope scope, sandbox::Filter filter, Range range) = 0;
  // The newest `limit`, oldest first; also of a sandbox that is gone.
  virtual Task<Result<std::vector<sandbox::Event>>> events(Scope scope, std::string id, int64_t limit) = 0;
  // Of all sandboxes in the scope: what is stored behind a number, at most `limit` of it.
  virtual Task<Result<EventsBehind>> events_behind(Scope scope, int64_t number, int64_t limit,
                                                   WallTime now) = 0;
  virtual Task<Result<int64_t>> newest_event() = 0;
  // Called with the id of a sandbox whose state or events readers see changed from now on; with "" when it
  // may be any. Never before what it announces is stored, as far as the disk takes it.
  virtual void on_change(std::function<void(const std::string& id)> call) = 0;
  virtual Task<Result<std::optional<sandbox::Output>>> output(Scope scope, std::string id) = 0;
  // Moves with every change: what was made from pages is valid as long as this stays the same. Nothing where
  // nobody can tell; then nothing may be kept.
  virtual std::optional<uint64_t> generation() const = 0;

  // Making one. Is there room for something new?
  virtual Task<Result<void>> check_room() = 0;
  virtual Task<Result<void>> insert(sandbox::Sandbox sandbox, std::vector<sandbox::Event> events) = 0;

  // Keys by which a create that is sent again is known.
  virtual Task<Result<std::optional<CreateKey>>> find_create_key(std::string owner, std::string key,
                                                                 WallTime now) = 0;
  virtual Task<Result<void>> put_create_key(CreateKey key) = 0;

  // Changing one, with its events or not at all. False: it is gone.
  virtual Task<Result<bool>> set_running(std::string id, std::string identity, sandbox::Status status,
                                         std::vector<sandbox::Event> events) = 0;
  virtual Task<Result<bool>> set_status(std::string id, sandbox::Status status,
                                        std::vector<sandbox::Event> events) = 0;
  virtual Task<Result<bool>> set_expiry(std::string id, WallTime expires) = 0;
  virtual Task<Result<bool>> set_metadata(std::string id, sandbox::Metadata metadata) = 0;

  // What has come to pass counts from now on, for every reader. An error says that it is not stored safely
  // yet: it is tried again by tend() until it is, and settle() says whether it is.
  virtual Task<Result<void>> note(std::string id, Change change) = 0;
  virtual Task<Result<void>> settle(std::string id) = 0;

  // Another sandbox on the host in the place of the one it was (a rollback). False: it is gone.
  virtual Task<Result<bool>> replace(std::string id, std::string handle, std::string identity,
                                     sandbox::Status status, std::vector<sandbox::Event> events) = 0;
  // One that was made from this image, if there is any.
  virtual Task<Result<std::optional<std::string>>> made_from(std::string image) = 0;

  // Snapshots; changes as above.
  virtual Task<Result<void>> insert_snapshot(sandbox::Snapshot snapshot) = 0;
  virtual Task<Result<std::optional<sandbox::Snapshot>>> find_snapshot(Scope scope, std::string id) = 0;
  virtual Task<Result<SnapshotPage>> snapshots(Scope scope, sandbox::SnapshotFilter filter, Range range) = 0;
  virtual Task<Result<bool>> set_snapshot_status(std::string id, sandbox::SnapshotStatus status) = 0;
  virtual Task<Result<bool>> set_snapshot_kept(sandbox::Snapshot snapshot) = 0;
  virtual Task<Result<bool>> remove_snapshot(std::string id) = 0;

  // Pools. False: there is none of this name, or already one.
  virtual Task<Result<bool>> insert_pool(sandbox::Pool pool) = 0;
  virtual Task<Result<bool>> set_pool_capacity(std::string owner, std::string name,
                                               sandbox::PoolCapacity capacity) = 0;
  virtual Task<Result<bool>> remove_pool(std::string owner, std::string name) = 0;
  virtual Task<Result<std::vector<sandbox::Pool>>> pools() = 0;  // all, by owner and name
  // Their sandboxes that wait.
  virtual Task<Result<void>> insert_pool_member(sandbox::PoolMember member) = 0;
  virtual Task<Result<bool>> set_pool_member_warm(sandbox::PoolMember member) = 0;
  virtual Task<Result<bool>> remove_pool_member(std::string handle) = 0;
  virtual Task<Result<std::vector<sandbox::PoolMember>>> pool_members() = 0;
  // The member with the handle of this sandbox is that sandbox from now on. False: there is no such member.
  virtual Task<Result<bool>> claim_pool_member(sandbox::Sandbox sandbox,
                                               std::vector<sandbox::Event> events) = 0;

  // The service's own work, across all owners.
  virtual Task<Everything> everything() = 0;
  virtual Task<Result<std::vector<std::string>>> due(WallTime now,
                                                     int64_t limit) = 0;  // longest overdue first
  virtual Task<Result<std::optional<WallTime>>> next_expiry() = 0;
  // Forgets events of sandboxes that are long gone, and old keys; true when there may be more.
  virtual Task<Result<bool>> prune_events(WallTime now) = 0;
  // From time to time: writes what waits. Says how long it can wait until the next time.
  virtual Task<std::chrono::milliseconds> tend() = 0;
  // Can something be stored, really, and does nothing wait to be?
  virtual Task<Result<void>> check_writing() = 0;
  // Only a new process could write.
  virtual bool wants_reopening() const = 0;
};

}  // namespace osb::store
