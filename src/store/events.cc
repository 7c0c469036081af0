#include "store/events.h"

#include <algorithm>

namespace osb::store {

Result<Events> Events::open(Database& db) {
  Events table;
  table.add_ = TRY(db.prepare("INSERT INTO events (sandbox_id, at_us, kind, detail) VALUES (?,?,?,?)"));
  table.of_ = TRY(db.prepare(
      "SELECT at_us, kind, detail FROM events WHERE sandbox_id = ? ORDER BY sequence DESC LIMIT ?"));
  table.prune_ =
      TRY(db.prepare("DELETE FROM events WHERE at_us < ? AND sandbox_id NOT IN (SELECT id FROM sandboxes)"));
  return table;
}

Result<void> Events::add(std::string_view sandbox_id, const SandboxEvent& event) {
  auto query = add_->run(sandbox_id, static_cast<int64_t>(event.at.time_since_epoch().count()),
                         std::string_view(event.kind), std::string_view(event.detail));
  return query.done();
}

Result<std::vector<SandboxEvent>> Events::of(std::string_view sandbox_id, int64_t limit) {
  std::vector<SandboxEvent> events;
  auto query = of_->run(sandbox_id, limit);
  while (TRY(query.next())) {
    events.push_back({WallTime(std::chrono::microseconds(query.integer(0))), std::string(query.text(1)),
                      std::string(query.text(2))});
  }
  std::reverse(events.begin(), events.end());
  return events;
}

Result<void> Events::prune(WallTime now) {
  auto query = prune_->run(static_cast<int64_t>((now - kKept).time_since_epoch().count()));
  return query.done();
}

}  // namespace osb::store
