#include "store/sqlite_repository.h"

#include "store/open_repository.h"

namespace osb::store {

Result<std::unique_ptr<Repository>> open_repository(const std::string& path, const DatabaseOwner& owner) {
  return std::make_unique<SqliteRepository>(TRY(Store::open(path, owner)));
}

Task<Result<SandboxPtr>> SqliteRepository::find(Scope scope, std::string id) {
  co_return store_.sandboxes().find(scope, id);
}

SandboxPtr SqliteRepository::at_hand(const Scope& scope, std::string_view id) {
  return store_.sandboxes().find(scope, id).value_or(nullptr);
}

Task<Result<Page>> SqliteRepository::page(Scope scope, Filter filter, Range range) {
  auto found = CO_TRY(store_.sandboxes().page(scope, filter, range.limit, range.offset));
  co_return Page{.sandboxes = std::move(found.rows), .total = found.total};
}

Task<Result<std::vector<Event>>> SqliteRepository::events(Scope scope, std::string id, int64_t limit) {
  co_return store_.events().of(scope, id, limit);
}

Task<Result<EventsBehind>> SqliteRepository::events_behind(Scope scope, int64_t number, int64_t limit,
                                                           WallTime now) {
  co_return store_.events().behind(scope, number, limit, now);
}

Task<Result<int64_t>> SqliteRepository::newest_event() { co_return store_.events().newest(); }

Task<Result<std::optional<Output>>> SqliteRepository::output(Scope scope, std::string id) {
  co_return store_.outputs().find(scope, id);
}

Task<Result<void>> SqliteRepository::check_room() { co_return store_.check_room(); }

Result<void> SqliteRepository::add_events(const std::string& id, const std::vector<Event>& events) {
  for (const Event& event : events) TRY(store_.events().add(id, event));
  return {};
}

// One statement needs no transaction around it.
template <class Write>
Result<bool> SqliteRepository::write_with_events(const std::string& id, const std::vector<Event>& events,
                                                 Write write) {
  bool written = false;
  if (events.empty()) {
    written = TRY(write());
  } else {
    auto transaction = TRY(store_.begin());
    if (!TRY(write())) return false;
    TRY(add_events(id, events));
    TRY(transaction.commit());
    written = true;
  }
  if (written) changed_(id);
  return written;
}

Task<Result<void>> SqliteRepository::insert(Sandbox sandbox, std::vector<Event> events) {
  auto write = [&]() -> Result<bool> {
    TRY(store_.sandboxes().insert(sandbox));
    return true;
  };
  CO_TRY(write_with_events(sandbox.id, events, write));
  co_return Result<void>();
}

Task<Result<std::optional<CreateKey>>> SqliteRepository::find_create_key(std::string owner, std::string key,
                                                                         WallTime now) {
  co_return store_.create_keys().find(owner, key, now);
}

Task<Result<void>> SqliteRepository::put_create_key(CreateKey key) {
  co_return store_.create_keys().put(key);
}

Task<Result<bool>> SqliteRepository::set_running(std::string id, std::string identity, Status status,
                                                 std::vector<Event> events) {
  auto write = [&] { return store_.sandboxes().set_identity(id, identity, status); };
  co_return write_with_events(id, events, write);
}

Task<Result<bool>> SqliteRepository::set_status(std::string id, Status status, std::vector<Event> events) {
  auto write = [&] { return store_.sandboxes().set_status(id, status); };
  co_return write_with_events(id, events, write);
}

Task<Result<bool>> SqliteRepository::set_expiry(std::string id, WallTime expires) {
  co_return store_.sandboxes().set_expiry(id, expires);
}

Task<Result<bool>> SqliteRepository::set_metadata(std::string id, sandbox::Metadata metadata) {
  co_return store_.sandboxes().set_metadata(id, metadata);
}

Task<Result<bool>> SqliteRepository::replace(std::string id, std::string handle, std::string identity,
                                             Status status, std::vector<Event> events) {
  auto write = [&] { return store_.sandboxes().replace(id, handle, identity, status); };
  co_return write_with_events(id, events, write);
}

Task<Result<std::optional<std::string>>> SqliteRepository::made_from(std::string image) {
  co_return store_.sandboxes().made_from(image);
}

Task<Result<void>> SqliteRepository::insert_snapshot(Snapshot snapshot) {
  co_return store_.snapshots().insert(snapshot);
}

Task<Result<std::optional<Snapshot>>> SqliteRepository::find_snapshot(Scope scope, std::string id) {
  co_return store_.snapshots().find(scope, id);
}

Task<Result<SnapshotPage>> SqliteRepository::snapshots(Scope scope, sandbox::SnapshotFilter filter,
                                                       Range range) {
  SnapshotPage page;
  page.snapshots = CO_TRY(store_.snapshots().list(scope, filter, range.limit, range.offset));
  page.total = CO_TRY(store_.snapshots().count(scope, filter));
  co_return page;
}

Task<Result<bool>> SqliteRepository::set_snapshot_status(std::string id, sandbox::SnapshotStatus status) {
  co_return store_.snapshots().set_status(id, status);
}

Task<Result<bool>> SqliteRepository::set_snapshot_kept(Snapshot snapshot) {
  co_return store_.snapshots().set_kept(snapshot);
}

Task<Result<bool>> SqliteRepository::remove_snapshot(std::string id) {
  co_return store_.snapshots().remove(id);
}

Task<Result<bool>> SqliteRepository::insert_pool(Pool pool) { co_return store_.pools().insert(pool); }

Task<Result<bool>> SqliteRepository::set_pool_capacity(std::string owner, std::string name,
                                                       sandbox::PoolCapacity capacity) {
  co_return store_.pools().set_capacity(owner, name, capacity);
}

Task<Result<bool>> SqliteRepository::remove_pool(std::string owner, std::string name) {
  co_return store_.pools().remove(owner, name);
}

Task<Result<std::vector<Pool>>> SqliteRepository::pools() { co_return store_.pools().all(); }

Task<Result<void>> SqliteRepository::insert_pool_member(PoolMember member) {
  co_return store_.pools().insert_member(member);
}

Task<Result<bool>> SqliteRepository::set_pool_member_warm(PoolMember member) {
  co_return store_.pools().set_member_warm(member.handle, member.identity, member.warmth);
}

Task<Result<bool>> SqliteRepository::remove_pool_member(std::string handle) {
  co_return store_.pools().remove_member(handle);
}

Task<Result<std::vector<PoolMember>>> SqliteRepository::pool_members() { co_return store_.pools().members(); }

Task<Result<bool>> SqliteRepository::claim_pool_member(Sandbox sandbox, std::vector<Event> events) {
  auto transaction = CO_TRY(store_.begin());
  if (!CO_TRY(store_.pools().remove_member(sandbox.handle))) co_return false;
  CO_TRY(store_.sandboxes().insert(sandbox));
  CO_TRY(add_events(sandbox.id, events));
  CO_TRY(transaction.commit());
  store_.sandboxes().keep(sandbox);
  changed_(sandbox.id);
  co_return true;
}

Task<Result<void>> SqliteRepository::note(std::string id, Change change) {
  auto stored = store_.note(id, std::move(change));
  changed_(id);
  co_return stored;
}

Task<Result<void>> SqliteRepository::settle(std::string id) {
  auto settled = store_.settle(id);
  if (settled) changed_(id);
  co_return settled;
}

Task<Everything> SqliteRepository::everything() {
  Everything all;
  auto listed = store_.sandboxes().list(Scope::everybody(), {}, -1, 0,
                                        [&all](const SandboxPtr& row) { all.sandboxes.push_back(row); });
  if (!listed) all.error = std::move(listed.error());
  co_return all;
}

Task<Result<std::vector<std::string>>> SqliteRepository::due(WallTime now, int64_t limit) {
  co_return store_.sandboxes().due(now, limit);
}

Task<Result<std::optional<WallTime>>> SqliteRepository::next_expiry() {
  co_return store_.sandboxes().next_expiry();
}

Task<Result<bool>> SqliteRepository::prune_events(WallTime now) {
  bool more_keys = CO_TRY(store_.create_keys().prune(now));
  co_return CO_TRY(store_.events().prune(now)) || more_keys;
}

Task<std::chrono::milliseconds> SqliteRepository::tend() {
  size_t waited = store_.waiting();
  auto again = store_.tend();
  if (store_.waiting() < waited) changed_("");
  co_return again;
}

Task<Result<void>> SqliteRepository::check_writing() {
  CO_TRY(store_.check_writing());
  if (store_.waiting() == 0) co_return Result<void>();
  co_return fail(Code::unavailable,
                 std::to_string(store_.waiting()) + " sandboxes have changes that are not on the disk yet");
}

}  // namespace osb::store
