#include "store/snapshots.h"

#include "base/strings.h"
#include "json/string_lists.h"

namespace osb::store {
namespace {

using sandbox::Scope;
using sandbox::SnapshotFilter;
using sandbox::SnapshotState;
using sandbox::SnapshotStatus;

constexpr std::string_view kColumns =
    "id, owner, sandbox_id, name, state, reason, message, changed_us, image, image_id, layers, runtime, "
    "bytes, created_us, network";

int64_t micros(WallTime time) { return time.time_since_epoch().count(); }
WallTime from_micros(int64_t value) { return WallTime(std::chrono::microseconds(value)); }

// A list of "overlay digest", as JSON.
std::string layers_text(const std::vector<sandbox::SnapshotLayer>& layers) {
  std::vector<std::string> list;
  for (const auto& layer : layers) list.push_back(layer.overlay + " " + layer.digest);
  return json::list_text(list);
}

std::optional<std::vector<sandbox::SnapshotLayer>> parse_layers(std::string_view text) {
  auto list = json::parse_list(text);
  if (!list) return std::nullopt;
  std::vector<sandbox::SnapshotLayer> layers;
  for (const std::string& item : *list) {
    auto words = split(item, ' ');
    if (words.size() != 2) return std::nullopt;
    layers.push_back({std::string(words[0]), std::string(words[1])});
  }
  return layers;
}

// One that cannot be read as it is cannot be restored, and can be deleted.
Snapshot read_row(const Query& query) {
  Snapshot row;
  row.id = query.text(0);
  row.owner = query.text(1);
  row.sandbox_id = query.text(2);
  if (!query.is_null(3)) row.name = query.text(3);
  auto state = sandbox::snapshot_state_from(query.text(4));
  row.status = {state.value_or(SnapshotState::failed), std::string(query.text(5)), std::string(query.text(6)),
                from_micros(query.integer(7))};
  row.base.image = query.text(8);
  row.base.image_id = query.text(9);
  auto layers = parse_layers(query.text(10));
  if (layers) row.base.layers = std::move(*layers);
  if (!state || !layers) {
    row.status.state = SnapshotState::failed;
    row.status.message = "What was stored about this snapshot cannot be read.";
  }
  row.runtime = query.text(11);
  row.bytes = query.integer(12);
  row.created = from_micros(query.integer(13));
  row.network = query.text(14);
  return row;
}

std::string where(const Scope& scope, const SnapshotFilter& filter, std::vector<std::string>& texts) {
  std::string sql;
  auto also = [&](std::string_view condition, const std::string& text) {
    sql.append(sql.empty() ? " WHERE " : " AND ").append(condition);
    texts.push_back(text);
  };
  if (scope.owner()) {
    also("owner = ?", *scope.owner());
    also("reason <> ?", sandbox::snapshot_reason::kPassing);
  }
  if (filter.sandbox_id) also("sandbox_id = ?", *filter.sandbox_id);
  if (filter.name) also("name = ?", *filter.name);
  if (!filter.states) return sql;
  sql.append(sql.empty() ? " WHERE " : " AND ").append("state IN (");
  for (SnapshotState state : *filter.states) {
    if (sql.back() != '(') sql += ',';
    sql += '?';
    texts.emplace_back(sandbox::to_string(state));
  }
  return sql + ")";
}

}  // namespace

Result<Snapshots> Snapshots::open(Database& db) {
  Snapshots table(db);
  std::string columns(kColumns);
  table.insert_ =
      TRY(db.prepare("INSERT INTO snapshots (" + columns + ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  table.find_ = TRY(db.prepare("SELECT " + columns + " FROM snapshots WHERE id = ?"));
  table.status_ = TRY(
      db.prepare("UPDATE snapshots SET state=?, reason=?, message=?, changed_us=? WHERE id = ? RETURNING 1"));
  table.kept_ =
      TRY(db.prepare("UPDATE snapshots SET state=?, reason=?, message=?, changed_us=?, image_id=?, layers=?,"
                     " bytes=? WHERE id = ? RETURNING 1"));
  table.remove_ = TRY(db.prepare("DELETE FROM snapshots WHERE id = ? RETURNING 1"));
  return table;
}

Result<void> Snapshots::insert(const Snapshot& row) {
  if (row.owner.empty()) return fail(Code::internal, "a snapshot without an owner");
  std::string layers = layers_text(row.base.layers);
  std::optional<std::string_view> name;
  if (row.name) name = *row.name;
  return insert_
      ->run(std::string_view(row.id), std::string_view(row.owner), std::string_view(row.sandbox_id), name,
            sandbox::to_string(row.status.state), std::string_view(row.status.reason),
            std::string_view(row.status.message), micros(row.status.changed),
            std::string_view(row.base.image), std::string_view(row.base.image_id), std::string_view(layers),
            std::string_view(row.runtime), row.bytes, micros(row.created), std::string_view(row.network))
      .done();
}

Result<std::optional<Snapshot>> Snapshots::find(const Scope& scope, std::string_view id) {
  auto query = find_->run(id);
  if (!TRY(query.next())) return std::nullopt;
  Snapshot row = read_row(query);
  // A token opens a sandbox, never a snapshot: whoever has no owner sees none.
  if (scope.owner() &&
      (*scope.owner() != row.owner || row.status.reason == sandbox::snapshot_reason::kPassing))
    return std::nullopt;
  return row;
}

Result<bool> Snapshots::set_status(std::string_view id, const SnapshotStatus& status) {
  return status_
      ->run(sandbox::to_string(status.state), std::string_view(status.reason),
            std::string_view(status.message), micros(status.changed), id)
      .next();
}

Result<bool> Snapshots::set_kept(const Snapshot& row) {
  std::string layers = layers_text(row.base.layers);
  return kept_
      ->run(sandbox::to_string(row.status.state), std::string_view(row.status.reason),
            std::string_view(row.status.message), micros(row.status.changed),
            std::string_view(row.base.image_id), std::string_view(layers), row.bytes,
            std::string_view(row.id))
      .next();
}

Result<bool> Snapshots::remove(std::string_view id) { return remove_->run(id).next(); }

Result<std::vector<Snapshot>> Snapshots::list(const Scope& scope, const SnapshotFilter& filter, int64_t limit,
                                              int64_t offset) {
  std::vector<std::string> texts;
  std::string sql = "SELECT " + std::string(kColumns) + " FROM snapshots" + where(scope, filter, texts) +
                    " ORDER BY created_us DESC, id DESC LIMIT ? OFFSET ?";
  Statement statement = TRY(db_->prepare(sql));
  auto query = statement.run_texts(texts, {limit, offset});
  std::vector<Snapshot> rows;
  while (TRY(query.next())) rows.push_back(read_row(query));
  return rows;
}

Result<int64_t> Snapshots::count(const Scope& scope, const SnapshotFilter& filter) {
  std::vector<std::string> texts;
  Statement statement = TRY(db_->prepare("SELECT count(*) FROM snapshots" + where(scope, filter, texts)));
  auto query = statement.run_texts(texts, {});
  TRY(query.next());
  return query.integer(0);
}

}  // namespace osb::store
