#include "store/pools.h"

namespace osb::store {
namespace {

using Text = std::string_view;

int64_t micros(WallTime time) { return time.time_since_epoch().count(); }
WallTime from_micros(int64_t value) { return WallTime(std::chrono::microseconds(value)); }

Pool read_pool(const Query& query) {
  Pool row;
  row.owner = query.text(0);
  row.name = query.text(1);
  row.shape = query.text(2);
  row.capacity = {.buffer_min = query.integer(3),
                  .buffer_max = query.integer(4),
                  .pool_min = query.integer(5),
                  .pool_max = query.integer(6)};
  row.created = from_micros(query.integer(7));
  row.id = query.text(8);
  return row;
}

}  // namespace

Result<Pools> Pools::open(Database& db) {
  Pools table;
  const std::string columns =
      "owner, name, template, buffer_min, buffer_max, pool_min, pool_max, created_us, id";
  table.insert_ = TRY(db.prepare("INSERT INTO pools (" + columns +
                                 ") VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING RETURNING 1"));
  table.find_ = TRY(db.prepare("SELECT " + columns + " FROM pools WHERE owner = ? AND name = ?"));
  table.all_ = TRY(db.prepare("SELECT " + columns + " FROM pools ORDER BY owner, name"));
  table.capacity_ = TRY(
      db.prepare("UPDATE pools SET buffer_min=?, buffer_max=?, pool_min=?, pool_max=? WHERE owner = ? AND "
                 "name = ? RETURNING 1"));
  table.remove_ = TRY(db.prepare("DELETE FROM pools WHERE owner = ? AND name = ? RETURNING 1"));
  table.insert_member_ =
      TRY(db.prepare("INSERT INTO pool_members (handle, pool, runtime, identity, warmth, created_us, "
                     "sandbox_id) VALUES (?,?,?,?,?,?,?)"));
  table.warm_ = TRY(db.prepare("UPDATE pool_members SET identity=?, warmth=? WHERE handle = ? RETURNING 1"));
  table.remove_member_ = TRY(db.prepare("DELETE FROM pool_members WHERE handle = ? RETURNING 1"));
  table.members_ =
      TRY(db.prepare("SELECT handle, pool, runtime, identity, warmth, created_us, sandbox_id FROM "
                     "pool_members ORDER BY created_us, handle"));
  return table;
}

Result<bool> Pools::insert(const Pool& row) {
  return insert_
      ->run(Text(row.owner), Text(row.name), Text(row.shape), row.capacity.buffer_min,
            row.capacity.buffer_max, row.capacity.pool_min, row.capacity.pool_max, micros(row.created),
            Text(row.id))
      .next();
}

Result<std::optional<Pool>> Pools::find(std::string_view owner, std::string_view name) {
  auto query = find_->run(owner, name);
  if (!TRY(query.next())) return std::nullopt;
  return read_pool(query);
}

Result<std::vector<Pool>> Pools::all() {
  std::vector<Pool> rows;
  auto query = all_->run();
  while (TRY(query.next())) rows.push_back(read_pool(query));
  return rows;
}

Result<bool> Pools::set_capacity(std::string_view owner, std::string_view name,
                                 const sandbox::PoolCapacity& to) {
  return capacity_->run(to.buffer_min, to.buffer_max, to.pool_min, to.pool_max, owner, name).next();
}

Result<bool> Pools::remove(std::string_view owner, std::string_view name) {
  return remove_->run(owner, name).next();
}

Result<void> Pools::insert_member(const PoolMember& row) {
  return insert_member_
      ->run(Text(row.handle), Text(row.pool), Text(row.runtime), Text(row.identity), Text(row.warmth),
            micros(row.created), Text(row.id))
      .done();
}

Result<bool> Pools::set_member_warm(std::string_view handle, std::string_view identity,
                                    std::string_view warmth) {
  return warm_->run(identity, warmth, handle).next();
}

Result<bool> Pools::remove_member(std::string_view handle) { return remove_member_->run(handle).next(); }

Result<std::vector<PoolMember>> Pools::members() {
  std::vector<PoolMember> rows;
  auto query = members_->run();
  while (TRY(query.next())) {
    rows.push_back({.handle = std::string(query.text(0)),
                    .id = std::string(query.text(6)),
                    .pool = std::string(query.text(1)),
                    .runtime = std::string(query.text(2)),
                    .identity = std::string(query.text(3)),
                    .warmth = std::string(query.text(4)),
                    .created = from_micros(query.integer(5))});
  }
  return rows;
}

}  // namespace osb::store
