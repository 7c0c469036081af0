#pragma once

// What happened to each sandbox, kept for a day after the event: how a sandbox that is gone came to its end
// stays readable. Bounded: on a server that makes thousands of sandboxes a minute the oldest go earlier.

#include <string>
#include <string_view>
#include <vector>

#include "sandbox/sandbox.h"
#include "store/database.h"
#include "store/events_behind.h"

namespace osb::store {

using sandbox::Event;

class Events {
 public:
  static constexpr auto kKept = std::chrono::hours(24);
  static constexpr int64_t kMaxKept = 100'000;
  static constexpr int64_t kPruneStep = 1000;
  static Result<Events> open(Database& db);

  // Belongs to whoever owns the sandbox, whose row has to be there still; without one it is nobody's.
  Result<void> add(std::string_view sandbox_id, const Event& event);
  // The newest `limit` that the scope covers, oldest first.
  Result<std::vector<Event>> of(const sandbox::Scope& scope, std::string_view sandbox_id, int64_t limit);
  // At most `limit` of those behind `number` that the scope covers.
  Result<EventsBehind> behind(const sandbox::Scope& scope, int64_t number, int64_t limit, WallTime now);
  Result<int64_t> newest();  // 0 before the first
  // Forgets those of sandboxes that are gone, when they are older than kKept or more than `most`; never the
  // newest, whose number the next one follows. At most kPruneStep at a time; true when there may be more.
  Result<bool> prune(WallTime now, int64_t most = kMaxKept);

 private:
  std::optional<Statement> add_, of_, behind_, newest_, bound_, prune_, changes_;
};

}  // namespace osb::store
