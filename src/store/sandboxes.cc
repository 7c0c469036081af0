#include "store/sandboxes.h"

#include <algorithm>

#include "base/log.h"
#include "json/string_lists.h"

namespace osb::store {
namespace {

constexpr std::string_view kColumns =
    "id, state, reason, message, image, entrypoint, metadata, limits, env_names, extensions, platform, "
    "identity,"
    " created_us, changed_us, expires_us, handle, owner, runtime";

int64_t micros(WallTime time) { return time.time_since_epoch().count(); }
std::optional<int64_t> micros(std::optional<WallTime> time) {
  return time ? std::optional(micros(*time)) : std::nullopt;
}
WallTime from_micros(int64_t value) { return WallTime(std::chrono::microseconds(value)); }

void note(std::string& damage, std::string_view column, std::string_view what) {
  damage.append(damage.empty() ? "" : ", ").append(column).append(" is no ").append(what);
}

void decode(std::string_view text, std::string_view column, std::vector<std::string>& into,
            std::string& damage) {
  auto list = json::parse_list(text);
  if (!list) return note(damage, column, "list of strings");
  into = std::move(*list);
}

void decode(std::string_view text, std::string_view column, json::StringMap& into, std::string& damage) {
  auto map = json::parse_map(text);
  if (!map) return note(damage, column, "map of strings");
  into = std::move(*map);
}

// What is wrong with the row; empty when nothing is.
std::string read_row(const Query& query, Sandbox& row) {
  std::string damage;
  auto state = sandbox::state_from(query.text(1));
  auto reason = sandbox::reason_from(query.text(2));
  row.id = query.text(0);
  row.status.state = state.value_or(State::failed);
  row.status.reason = reason.value_or(Reason::none);
  row.status.message = query.text(3);
  if (!state) {
    note(damage, "state", "word that this program knows");
    row.status.reason = Reason::damaged;
    row.status.message = "What was stored about this sandbox cannot be read.";
  } else if (!reason) {
    note(damage, "reason", "word that this program knows");
  }
  row.image = query.text(4);
  decode(query.text(5), "entrypoint", row.entrypoint, damage);
  decode(query.text(6), "metadata", row.metadata, damage);
  decode(query.text(7), "limits", row.limits, damage);
  decode(query.text(8), "env_names", row.env_names, damage);
  decode(query.text(9), "extensions", row.extensions, damage);
  row.platform = query.text(10);
  row.identity = query.text(11);
  row.created = from_micros(query.integer(12));
  row.status.changed = from_micros(query.integer(13));
  row.expires = query.is_null(14) ? std::nullopt : std::optional(from_micros(query.integer(14)));
  row.handle = query.text(15);
  row.owner = query.text(16);
  row.runtime = query.text(17);
  return damage;
}

// " WHERE ..." and the texts to bind. Metadata is compared through json_each, so that no key can act as a
// path.
std::string where(const Scope& scope, const Filter& filter, std::vector<std::string>& texts) {
  std::string sql;
  auto join = [&sql] { sql += sql.empty() ? " WHERE " : " AND "; };
  if (scope.owner()) {
    join();
    sql += "owner = ?";
    texts.push_back(*scope.owner());
  }
  if (filter.states) {
    join();
    sql += "state IN (";
    for (State state : *filter.states) {
      if (sql.back() != '(') sql += ',';
      sql += '?';
      texts.emplace_back(sandbox::to_string(state));
    }
    sql += ')';
  }
  for (const auto& [key, value] : filter.metadata) {
    join();
    sql +=
        "EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(metadata) THEN metadata ELSE '{}' END) m"
        " WHERE m.key = ? AND m.value = ?)";
    texts.push_back(key);
    texts.push_back(value);
  }
  return sql;
}

bool is_open(const Filter& filter) { return !filter.states && filter.metadata.empty(); }

}  // namespace

Result<Sandboxes> Sandboxes::open(Database& db) {
  Sandboxes table(db);
  std::string columns(kColumns);
  table.insert_ =
      TRY(db.prepare("INSERT INTO sandboxes (" + columns + ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  table.find_ = TRY(db.prepare("SELECT " + columns + " FROM sandboxes WHERE id = ?"));
  // RETURNING tells "no such row" from "changed" without a second statement.
  table.identity_ =
      TRY(db.prepare("UPDATE sandboxes SET identity=?, state=?, reason=?, message=?, changed_us=? WHERE id = "
                     "? RETURNING 1"));
  table.status_ = TRY(
      db.prepare("UPDATE sandboxes SET state=?, reason=?, message=?, changed_us=? WHERE id = ? RETURNING 1"));
  table.expiry_ = TRY(db.prepare("UPDATE sandboxes SET expires_us=? WHERE id = ? RETURNING 1"));
  table.metadata_ = TRY(db.prepare("UPDATE sandboxes SET metadata=? WHERE id = ? RETURNING 1"));
  table.remove_ = TRY(db.prepare("DELETE FROM sandboxes WHERE id = ? RETURNING 1"));
  table.list_ = TRY(
      db.prepare("SELECT id FROM sandboxes WHERE owner = ? ORDER BY created_us DESC, id DESC LIMIT ? OFFSET "
                 "?"));
  table.count_ = TRY(db.prepare("SELECT count(*) FROM sandboxes WHERE owner = ?"));
  table.due_ = TRY(db.prepare("SELECT id FROM sandboxes WHERE expires_us <= ? ORDER BY expires_us LIMIT ?"));
  table.next_ = TRY(db.prepare("SELECT min(expires_us) FROM sandboxes WHERE expires_us IS NOT NULL"));
  table.replace_ = TRY(db.prepare(
      "UPDATE sandboxes SET handle=?, identity=?, state=?, reason=?, message=?, changed_us=? WHERE "
      "id = ? RETURNING 1"));
  table.made_from_ =
      TRY(db.prepare("SELECT id FROM sandboxes WHERE image = ? AND state NOT IN ('Terminated', 'Failed',"
                     " 'Stopping') LIMIT 1"));
  return table;
}

Result<void> Sandboxes::insert(const Sandbox& row) {
  if (row.owner.empty()) return fail(Code::invalid_argument, "sandbox " + row.id + " has no owner");
  touch(row.id);
  std::string entrypoint = json::list_text(row.entrypoint), env_names = json::list_text(row.env_names);
  std::string metadata = json::map_text(row.metadata), limits = json::map_text(row.limits);
  std::string extensions = json::map_text(row.extensions);
  using Text = std::string_view;
  auto query = insert_->run(Text(row.id), to_string(row.status.state), to_string(row.status.reason),
                            Text(row.status.message), Text(row.image), Text(entrypoint), Text(metadata),
                            Text(limits), Text(env_names), Text(extensions), Text(row.platform),
                            Text(row.identity), micros(row.created), micros(row.status.changed),
                            micros(row.expires), Text(row.handle), Text(row.owner), Text(row.runtime));
  return query.done();
}

Result<SandboxPtr> Sandboxes::read(std::string_view id) {
  auto query = find_->run(id);
  if (!TRY(query.next())) return nullptr;
  auto row = std::make_shared<Sandbox>();
  note_damage(std::string(id), read_row(query, *row));
  return row;
}

void Sandboxes::note_damage(const std::string& id, std::string damage) {
  if (damage.empty()) {
    if (!damaged_.empty()) damaged_.erase(id);
    return;
  }
  auto [entry, is_new] = damaged_.insert_or_assign(id, std::move(damage));
  if (is_new) log::error("a row of the state database is damaged", {{"id", id}, {"what", entry->second}});
}

Result<SandboxPtr> Sandboxes::find(const Scope& scope, std::string_view id) {
  SandboxPtr row = TRY(find_any(id));
  return row != nullptr && scope.covers(row->owner, row->id) ? row : nullptr;
}

Result<SandboxPtr> Sandboxes::find_any(std::string_view id) {
  SandboxPtr row = TRY(find_stored(id));
  if (held_.empty() || row == nullptr) return row;
  auto held = held_.find(id);
  return held == held_.end() ? row : with_held(std::move(row), held->second);
}

Result<SandboxPtr> Sandboxes::find_stored(std::string_view id) {
  if (auto found = kept_.find(id); found != kept_.end()) return found->second;
  SandboxPtr row = TRY(read(id));
  // What a transaction has written may still be taken back.
  if (row == nullptr || db_->in_transaction()) return row;
  if (kept_.size() >= kMaxKept) kept_.clear();
  kept_.emplace(id, row);
  return row;
}

void Sandboxes::keep(const Sandbox& row) {
  if (db_->in_transaction()) return;
  if (kept_.size() >= kMaxKept) kept_.clear();
  kept_.insert_or_assign(row.id, std::make_shared<const Sandbox>(row));
}

void Sandboxes::touch(std::string_view id) {
  ++generation_;
  rows_.touch(id);
}

Result<bool> Sandboxes::change(std::string_view id, Query query) {
  touch(id);
  auto found = query.next();
  if (found) {
    if (auto done = query.done(); !done) found = std::unexpected(std::move(done.error()));
  }
  // Also after a failure: what the disk has now is not known.
  if (auto kept = kept_.find(id); kept != kept_.end()) kept_.erase(kept);
  return found;
}

SandboxPtr Sandboxes::with_held(SandboxPtr row, const Held& held) const {
  if (held.removed) return nullptr;
  auto changed = std::make_shared<Sandbox>(*row);
  if (held.status) changed->status = *held.status;
  if (held.expires) changed->expires = held.expires;
  return changed;
}

void Sandboxes::hold(std::string_view id, Held held) {
  touch(id);
  Held& all = held_[std::string(id)];
  if (held.status) all.status = std::move(held.status);
  if (held.expires) all.expires = held.expires;
  all.removed |= held.removed;
}

void Sandboxes::let_go(std::string_view id) {
  touch(id);
  if (auto held = held_.find(id); held != held_.end()) held_.erase(held);
}

Result<bool> Sandboxes::write_held(const std::string& id) {
  const Held& held = held_[id];
  if (held.removed) {
    TRY(change(id, remove_->run(std::string_view(id))));
    damaged_.erase(id);
    return true;
  }
  if (held.status) {
    const Status& status = *held.status;
    TRY(change(
        id, status_->run(to_string(status.state), to_string(status.reason), std::string_view(status.message),
                         micros(status.changed), std::string_view(id))));
  }
  if (held.expires) TRY(change(id, expiry_->run(micros(*held.expires), std::string_view(id))));
  return false;
}

Result<void> Sandboxes::settle_first(std::string_view id) {
  if (held_.empty() || !held_.contains(id)) return {};
  // Settling is a transaction of its own; Store::begin() has tried it.
  if (db_->in_transaction())
    return fail(Code::unavailable, "earlier changes of " + std::string(id) + " wait");
  return settle_(id);
}

Result<bool> Sandboxes::set_identity(std::string_view id, std::string_view identity, const Status& status) {
  TRY(settle_first(id));
  return change(id, identity_->run(identity, to_string(status.state), to_string(status.reason),
                                   std::string_view(status.message), micros(status.changed), id));
}

Result<bool> Sandboxes::replace(std::string_view id, std::string_view handle, std::string_view identity,
                                const Status& status) {
  TRY(settle_first(id));
  return change(id, replace_->run(handle, identity, to_string(status.state), to_string(status.reason),
                                  std::string_view(status.message), micros(status.changed), id));
}

Result<std::optional<std::string>> Sandboxes::made_from(std::string_view image) {
  auto query = made_from_->run(image);
  if (!TRY(query.next())) return std::nullopt;
  return std::string(query.text(0));
}

Result<bool> Sandboxes::set_status(std::string_view id, const Status& status) {
  TRY(settle_first(id));
  return change(id, status_->run(to_string(status.state), to_string(status.reason),
                                 std::string_view(status.message), micros(status.changed), id));
}

Result<bool> Sandboxes::set_expiry(std::string_view id, WallTime expires) {
  TRY(settle_first(id));
  return change(id, expiry_->run(micros(expires), id));
}

Result<bool> Sandboxes::set_metadata(std::string_view id, const sandbox::Metadata& metadata) {
  TRY(settle_first(id));
  std::string text = json::map_text(metadata);
  return change(id, metadata_->run(std::string_view(text), id));
}

Result<bool> Sandboxes::remove(std::string_view id) {
  TRY(settle_first(id));
  damaged_.erase(std::string(id));
  return change(id, remove_->run(id));
}

// All that match, while some rows are not what the disk says: states are compared here, not there.
Result<std::vector<SandboxPtr>> Sandboxes::list_with_held(const Scope& scope, const Filter& filter) {
  std::vector<std::string> texts;
  Filter stored{.metadata = filter.metadata};
  std::string sql =
      "SELECT id FROM sandboxes" + where(scope, stored, texts) + " ORDER BY created_us DESC, id DESC";
  Statement statement = TRY(db_->prepare(sql));
  auto query = statement.run_texts(texts, {});
  std::vector<SandboxPtr> rows;
  while (TRY(query.next())) {
    SandboxPtr row = TRY(find_any(query.text(0)));
    if (row == nullptr) continue;
    if (filter.states && std::ranges::find(*filter.states, row->status.state) == filter.states->end())
      continue;
    rows.push_back(std::move(row));
  }
  return rows;
}

// The ids come from an index alone; most rows are at hand.
Result<void> Sandboxes::list(const Scope& scope, const Filter& filter, int64_t limit, int64_t offset,
                             const std::function<void(const SandboxPtr&)>& visit) {
  if (!held_.empty()) {
    for (const SandboxPtr& row : TRY(list_with_held(scope, filter))) {
      if (offset-- > 0) continue;
      if (limit >= 0 && limit-- == 0) break;
      visit(row);
    }
    return {};
  }
  auto drain = [&](Query query) -> Result<void> {
    while (TRY(query.next())) {
      if (SandboxPtr row = TRY(find_any(query.text(0)))) visit(row);
    }
    return {};
  };
  if (scope.owner() && is_open(filter))
    return drain(list_->run(std::string_view(*scope.owner()), limit, offset));
  std::vector<std::string> texts;
  std::string sql = "SELECT id FROM sandboxes" + where(scope, filter, texts) +
                    " ORDER BY created_us DESC, id DESC LIMIT ? OFFSET ?";
  Statement statement = TRY(db_->prepare(sql));
  return drain(statement.run_texts(texts, {limit, offset}));
}

// Brings the list of rows up to what the table has. False when there is none that could be trusted: SQLite
// is asked then.
bool Sandboxes::refresh_rows() {
  if (db_->in_transaction()) return false;  // what is read now may be taken back
  if (!rows_.loaded()) return load_rows().value_or(false);
  for (const std::string& id : rows_.take_touched()) {
    auto row = find_any(id);
    if (!row) {
      rows_.drop();
      return false;
    }
    if (*row != nullptr) {
      rows_.put(std::move(*row));
    } else {
      rows_.remove(id);
    }
  }
  return rows_.loaded();  // there may be too many by now
}

Result<bool> Sandboxes::load_rows() {
  Filter all;
  if (TRY(count(Scope::everybody(), all)) > static_cast<int64_t>(RowList::kMaxRows)) return false;
  std::vector<SandboxPtr> rows;
  TRY(list(Scope::everybody(), all, -1, 0, [&rows](const SandboxPtr& row) { rows.push_back(row); }));
  rows_.load(std::move(rows));
  return true;
}

Result<RowList::Found> Sandboxes::page(const Scope& scope, const Filter& filter, int64_t limit,
                                       int64_t offset) {
  if (refresh_rows()) return rows_.find(scope, filter, limit, offset);
  RowList::Found found;
  TRY(list(scope, filter, limit, offset, [&found](const SandboxPtr& row) { found.rows.push_back(row); }));
  found.total = TRY(count(scope, filter));
  return found;
}

Result<int64_t> Sandboxes::count(const Scope& scope, const Filter& filter) {
  if (!held_.empty()) return static_cast<int64_t>(TRY(list_with_held(scope, filter)).size());
  if (scope.owner() && is_open(filter)) {
    auto query = count_->run(std::string_view(*scope.owner()));
    TRY(query.next());
    return query.integer(0);
  }
  std::vector<std::string> texts;
  Statement statement = TRY(db_->prepare("SELECT count(*) FROM sandboxes" + where(scope, filter, texts)));
  auto query = statement.run_texts(texts, {});
  TRY(query.next());
  return query.integer(0);
}

Result<std::vector<std::string>> Sandboxes::due(WallTime now, int64_t limit) {
  std::vector<std::string> ids;
  for (const auto& [id, held] : held_) {
    if (!held.removed && held.expires && *held.expires <= now) ids.push_back(id);
  }
  // Those that are held count above or not at all, and must not take the place of others.
  auto query = due_->run(micros(now), limit + static_cast<int64_t>(held_.size()));
  while (TRY(query.next())) {
    auto held = held_.find(query.text(0));
    if (held == held_.end() || (!held->second.removed && !held->second.expires))
      ids.emplace_back(query.text(0));
  }
  if (static_cast<int64_t>(ids.size()) > limit) ids.resize(static_cast<size_t>(limit));
  return ids;
}

Result<std::optional<WallTime>> Sandboxes::next_expiry() {
  auto query = next_->run();
  if (!TRY(query.next()) || query.is_null(0)) return std::nullopt;
  return from_micros(query.integer(0));
}

}  // namespace osb::store
