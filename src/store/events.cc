#include "store/events.h"

#include <algorithm>

namespace osb::store {

Result<Events> Events::open(Database& db) {
  Events table;
  // Of a sandbox without a row it is nobody's: only the service itself sees it.
  table.add_ =
      TRY(db.prepare("INSERT INTO events (sandbox_id, at_us, kind, detail, owner) VALUES (?1,?2,?3,?4,"
                     " coalesce((SELECT owner FROM sandboxes WHERE id = ?1), ''))"));
  table.of_ = TRY(db.prepare(
      "SELECT at_us, kind, detail, owner FROM events WHERE sandbox_id = ? ORDER BY sequence DESC LIMIT ?"));
  table.behind_ = TRY(db.prepare(
      "SELECT sequence, sandbox_id, at_us, kind, detail FROM events WHERE sequence > ? AND sequence "
      "<= ? AND (?3 OR owner = ?4) ORDER BY sequence LIMIT ?5"));
  table.newest_ = TRY(db.prepare("SELECT coalesce(max(sequence), 0) FROM events"));
  // Up to here events may have been forgotten; see below.
  table.bound_ = TRY(db.prepare(
      "SELECT max(coalesce((SELECT sequence FROM events WHERE at_us < ? ORDER BY at_us DESC LIMIT 1), 0),"
      " coalesce((SELECT max(sequence) FROM events), 0) - ?)"));
  // Sequence follows time, so both bounds become one on the sequence and only what is behind it is looked at.
  table.prune_ = TRY(db.prepare(
      "DELETE FROM events WHERE sequence IN (SELECT sequence FROM events WHERE sequence <= max("
      " coalesce((SELECT sequence FROM events WHERE at_us < ? ORDER BY at_us DESC LIMIT 1), 0),"
      " coalesce((SELECT max(sequence) FROM events), 0) - ?)"
      " AND sequence < (SELECT max(sequence) FROM events)"
      " AND NOT EXISTS (SELECT 1 FROM sandboxes WHERE id = sandbox_id) ORDER BY sequence LIMIT ?)"));
  table.changes_ = TRY(db.prepare("SELECT changes()"));
  return table;
}

Result<void> Events::add(std::string_view sandbox_id, const Event& event) {
  auto query = add_->run(sandbox_id, static_cast<int64_t>(event.at.time_since_epoch().count()),
                         std::string_view(event.kind), std::string_view(event.detail));
  return query.done();
}

Result<std::vector<Event>> Events::of(const sandbox::Scope& scope, std::string_view sandbox_id,
                                      int64_t limit) {
  std::vector<Event> events;
  auto query = of_->run(sandbox_id, limit);
  while (TRY(query.next())) {
    // All events of a sandbox have its owner, so this drops all of them or none.
    if (!scope.covers(query.text(3), sandbox_id)) continue;
    events.push_back({WallTime(std::chrono::microseconds(query.integer(0))), std::string(query.text(1)),
                      std::string(query.text(2))});
  }
  std::reverse(events.begin(), events.end());
  return events;
}

Result<int64_t> Events::newest() {
  auto query = newest_->run();
  TRY(query.next());
  return query.integer(0);
}

Result<EventsBehind> Events::behind(const sandbox::Scope& scope, int64_t number, int64_t limit,
                                    WallTime now) {
  EventsBehind out;
  int64_t newest = TRY(this->newest());
  {
    auto query = bound_->run(static_cast<int64_t>((now - kKept).time_since_epoch().count()), kMaxKept);
    TRY(query.next());
    // A number beyond the newest is another database's.
    out.gap = number < query.integer(0) || number > newest;
  }
  if (number > newest) number = 0;
  bool all = !scope.owner();
  auto query = behind_->run(number, newest, static_cast<int64_t>(all),
                            std::string_view(all ? std::string_view() : *scope.owner()), limit);
  while (TRY(query.next())) {
    out.events.push_back({query.integer(0),
                          std::string(query.text(1)),
                          {WallTime(std::chrono::microseconds(query.integer(2))), std::string(query.text(3)),
                           std::string(query.text(4))}});
  }
  bool cut = static_cast<int64_t>(out.events.size()) == limit;
  out.upto = cut ? out.events.back().number : newest;
  return out;
}

Result<bool> Events::prune(WallTime now, int64_t most) {
  TRY(prune_->run(static_cast<int64_t>((now - kKept).time_since_epoch().count()), most, kPruneStep).done());
  auto query = changes_->run();
  TRY(query.next());
  return query.integer(0) >= kPruneStep;
}

}  // namespace osb::store
