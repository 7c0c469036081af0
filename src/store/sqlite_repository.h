#pragma once

// The repository on a SQLite file. Every call is done when it is awaited, without a turn of the loop or
// another thread: a commit takes some tens of microseconds (database.h says why), less than a hop would.

#include "store/repository.h"
#include "store/store.h"

namespace osb::store {

class SqliteRepository final : public Repository {
 public:
  explicit SqliteRepository(std::unique_ptr<Store> store) : owned_(std::move(store)), store_(*owned_) {}
  Store& store() { return store_; }  // for tests that look at rows

  Task<Result<SandboxPtr>> find(Scope scope, std::string id) override;
  SandboxPtr at_hand(const Scope& scope, std::string_view id) override;
  Task<Result<Page>> page(Scope scope, Filter filter, Range range) override;
  Task<Result<std::vector<Event>>> events(Scope scope, std::string id, int64_t limit) override;
  Task<Result<EventsBehind>> events_behind(Scope scope, int64_t number, int64_t limit, WallTime now) override;
  Task<Result<int64_t>> newest_event() override;
  void on_change(std::function<void(const std::string&)> call) override { changed_ = std::move(call); }
  Task<Result<std::optional<Output>>> output(Scope scope, std::string id) override;
  std::optional<uint64_t> generation() const override { return store_.sandboxes().generation(); }

  Task<Result<void>> check_room() override;
  Task<Result<void>> insert(Sandbox sandbox, std::vector<Event> events) override;
  Task<Result<std::optional<CreateKey>>> find_create_key(std::string owner, std::string key,
                                                         WallTime now) override;
  Task<Result<void>> put_create_key(CreateKey key) override;
  Task<Result<bool>> set_running(std::string id, std::string identity, Status status,
                                 std::vector<Event> events) override;
  Task<Result<bool>> set_status(std::string id, Status status, std::vector<Event> events) override;
  Task<Result<bool>> set_expiry(std::string id, WallTime expires) override;
  Task<Result<bool>> set_metadata(std::string id, sandbox::Metadata metadata) override;

  Task<Result<bool>> replace(std::string id, std::string handle, std::string identity, Status status,
                             std::vector<Event> events) override;
  Task<Result<std::optional<std::string>>> made_from(std::string image) override;

  Task<Result<void>> insert_snapshot(Snapshot snapshot) override;
  Task<Result<std::optional<Snapshot>>> find_snapshot(Scope scope, std::string id) override;
  Task<Result<SnapshotPage>> snapshots(Scope scope, sandbox::SnapshotFilter filter, Range range) override;
  Task<Result<bool>> set_snapshot_status(std::string id, sandbox::SnapshotStatus status) override;
  Task<Result<bool>> set_snapshot_kept(Snapshot snapshot) override;
  Task<Result<bool>> remove_snapshot(std::string id) override;

  Task<Result<bool>> insert_pool(Pool pool) override;
  Task<Result<bool>> set_pool_capacity(std::string owner, std::string name,
                                       sandbox::PoolCapacity capacity) override;
  Task<Result<bool>> remove_pool(std::string owner, std::string name) override;
  Task<Result<std::vector<Pool>>> pools() override;
  Task<Result<void>> insert_pool_member(PoolMember member) override;
  Task<Result<bool>> set_pool_member_warm(PoolMember member) override;
  Task<Result<bool>> remove_pool_member(std::string handle) override;
  Task<Result<std::vector<PoolMember>>> pool_members() override;
  Task<Result<bool>> claim_pool_member(Sandbox sandbox, std::vector<Event> events) override;

  Task<Result<void>> note(std::string id, Change change) override;
  Task<Result<void>> settle(std::string id) override;

  Task<Everything> everything() override;
  Task<Result<std::vector<std::string>>> due(WallTime now, int64_t limit) override;
  Task<Result<std::optional<WallTime>>> next_expiry() override;
  Task<Result<bool>> prune_events(WallTime now) override;
  Task<std::chrono::milliseconds> tend() override;
  Task<Result<void>> check_writing() override;
  bool wants_reopening() const override { return store_.wants_reopening(); }

 private:
  Result<void> add_events(const std::string& id, const std::vector<Event>& events);
  template <class Write>
  Result<bool> write_with_events(const std::string& id, const std::vector<Event>& events, Write write);

  std::function<void(const std::string&)> changed_ = [](const std::string&) {};
  std::unique_ptr<Store> owned_;
  Store& store_;
};

}  // namespace osb::store
