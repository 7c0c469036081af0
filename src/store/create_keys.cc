#include "store/create_keys.h"

namespace osb::store {
namespace {

int64_t micros(WallTime time) { return time.time_since_epoch().count(); }

}  // namespace

Result<CreateKeys> CreateKeys::open(Database& db) {
  CreateKeys table;
  table.find_ = TRY(db.prepare(
      "SELECT fingerprint, sandbox_id, at_us FROM create_keys WHERE owner = ? AND key = ? AND at_us >= ?"));
  table.put_ = TRY(db.prepare(
      "INSERT OR REPLACE INTO create_keys (owner, key, fingerprint, sandbox_id, at_us) VALUES (?,?,?,?,?)"));
  table.prune_ = TRY(db.prepare(
      "DELETE FROM create_keys WHERE (owner, key) IN (SELECT owner, key FROM create_keys WHERE at_us < "
      "? ORDER BY at_us LIMIT ?)"));
  table.changes_ = TRY(db.prepare("SELECT changes()"));
  return table;
}

Result<std::optional<CreateKey>> CreateKeys::find(std::string_view owner, std::string_view key,
                                                  WallTime now) {
  auto query = find_->run(owner, key, micros(now - kKept));
  if (!TRY(query.next())) return std::nullopt;
  return CreateKey{.owner = std::string(owner),
                   .key = std::string(key),
                   .fingerprint = std::string(query.text(0)),
                   .sandbox_id = std::string(query.text(1)),
                   .at = WallTime(std::chrono::microseconds(query.integer(2)))};
}

Result<void> CreateKeys::put(const CreateKey& key) {
  return put_
      ->run(std::string_view(key.owner), std::string_view(key.key), std::string_view(key.fingerprint),
            std::string_view(key.sandbox_id), micros(key.at))
      .done();
}

Result<bool> CreateKeys::prune(WallTime now) {
  TRY(prune_->run(micros(now - kKept), kPruneStep).done());
  auto query = changes_->run();
  TRY(query.next());
  return query.integer(0) >= kPruneStep;
}

}  // namespace osb::store
