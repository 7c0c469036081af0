#include "store/owner.h"

namespace osb::store {
namespace {

Result<std::optional<DatabaseOwner>> read_owner(Database& db) {
  {
    Statement tables = TRY(db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'owner'"));
    auto query = tables.run();
    if (!TRY(query.next())) return std::nullopt;
  }
  Statement statement = TRY(db.prepare("SELECT identity, state_dir FROM owner"));
  auto query = statement.run();
  if (!TRY(query.next())) return std::nullopt;
  return DatabaseOwner{std::string(query.text(0)), std::string(query.text(1))};
}

bool is_same(const DatabaseOwner& one, const DatabaseOwner& other) {
  if (!one.identity.empty() && !other.identity.empty()) return one.identity == other.identity;
  return one.state_dir == other.state_dir;
}

}  // namespace

Result<void> check_owner(Database& db, const DatabaseOwner& owner) {
  auto noted = TRY(read_owner(db));
  if (!noted || is_same(*noted, owner)) return {};
  return fail(Code::already_exists,
              "the state database belongs to the service with the state directory " + noted->state_dir +
                  ", and this one has " + owner.state_dir +
                  "; set another store.path, or move the database away when that service is gone for good");
}

// A table of its own outside the migrations: it says nothing about the schema, and programs before it need
// not know it.
Result<void> note_owner(Database& db, const DatabaseOwner& owner) {
  auto noted = TRY(read_owner(db));
  if (noted && noted->identity == owner.identity && noted->state_dir == owner.state_dir) return {};
  auto transaction = TRY(Transaction::begin(db));
  TRY(db.execute(
      "CREATE TABLE IF NOT EXISTS owner (identity TEXT NOT NULL, state_dir TEXT NOT NULL) STRICT"));
  TRY(db.execute("DELETE FROM owner"));
  {
    Statement insert = TRY(db.prepare("INSERT INTO owner (identity, state_dir) VALUES (?, ?)"));
    auto query = insert.run(std::string_view(owner.identity), std::string_view(owner.state_dir));
    TRY(query.done());
  }
  return transaction.commit();
}

}  // namespace osb::store
