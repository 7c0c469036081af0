#include "store/outputs.h"

namespace osb::store {

Result<Outputs> Outputs::open(Database& db) {
  Outputs table;
  table.put_ =
      TRY(db.prepare("INSERT OR REPLACE INTO outputs (sandbox_id, text, truncated, owner) VALUES (?1,?2,?3,"
                     " coalesce((SELECT owner FROM sandboxes WHERE id = ?1), ''))"));
  table.find_ = TRY(db.prepare("SELECT text, truncated, owner FROM outputs WHERE sandbox_id = ?"));
  table.remove_ = TRY(db.prepare("DELETE FROM outputs WHERE sandbox_id = ?"));
  return table;
}

Result<void> Outputs::put(std::string_view sandbox_id, const Output& output) {
  return put_->run(sandbox_id, std::string_view(output.text), static_cast<int64_t>(output.truncated)).done();
}

Result<std::optional<Output>> Outputs::find(const sandbox::Scope& scope, std::string_view sandbox_id) {
  auto query = find_->run(sandbox_id);
  if (!TRY(query.next()) || !scope.covers(query.text(2), sandbox_id)) return std::nullopt;
  return Output{std::string(query.text(0)), query.integer(1) != 0};
}

Result<void> Outputs::remove(std::string_view sandbox_id) { return remove_->run(sandbox_id).done(); }

}  // namespace osb::store
