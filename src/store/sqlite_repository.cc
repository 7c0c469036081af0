#include "store/sqlite_repository.h"

#include "store/open_repository.h"

namespace osb::store {

Result<std::unique_ptr<Repository>> open_repository(const std::string& path, const DatabaseOwner& owner) {
  return std::make_unique<SqliteRepository>(TRY(Store::open(path, owner)));
}

Task<Result<SandboxPtr>> SqliteRepository::find(Scope scope, std::string id) {
  co_return store_.sandboxes().find(scope, id);
}

Task<Result<Page>> SqliteRepository::page(Scope scope, Filter filter, Range range) {
  Page page;
  CO_TRY(store_.sandboxes().list(scope, filter, range.limit, range.offset,
                                 [&page](const SandboxPtr& row) { page.sandboxes.push_back(row); }));
  page.total = CO_TRY(store_.sandboxes().count(scope, filter));
  co_return page;
}

Task<Result<std::vector<Event>>> SqliteRepository::events(Scope scope, std::string id, int64_t limit) {
  co_return store_.events().of(scope, id, limit);
}

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
  if (events.empty()) return write();
  auto transaction = TRY(store_.begin());
  if (!TRY(write())) return false;
  TRY(add_events(id, events));
  TRY(transaction.commit());
  return true;
}

Task<Result<void>> SqliteRepository::insert(Sandbox sandbox, std::vector<Event> events) {
  auto write = [&]() -> Result<bool> {
    TRY(store_.sandboxes().insert(sandbox));
    return true;
  };
  CO_TRY(write_with_events(sandbox.id, events, write));
  co_return Result<void>();
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

Task<Result<void>> SqliteRepository::note(std::string id, Change change) {
  co_return store_.note(id, std::move(change));
}

Task<Result<void>> SqliteRepository::settle(std::string id) { co_return store_.settle(id); }

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

Task<Result<bool>> SqliteRepository::prune_events(WallTime now) { co_return store_.events().prune(now); }

Task<std::chrono::milliseconds> SqliteRepository::tend() { co_return store_.tend(); }

Task<Result<void>> SqliteRepository::check_writing() {
  CO_TRY(store_.check_writing());
  if (store_.waiting() == 0) co_return Result<void>();
  co_return fail(Code::unavailable,
                 std::to_string(store_.waiting()) + " sandboxes have changes that are not on the disk yet");
}

}  // namespace osb::store
