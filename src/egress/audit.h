#pragma once

// What a sandbox tried to reach, and what came of it: every lookup and every connection, the last ones of
// each sandbox, in memory. Counters of all of them for the metrics.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "base/clock.h"
#include "egress/verdict.h"
#include "io/task.h"

namespace osb::egress {

struct AuditEvent {
  uint64_t number = 0;  // 1, 2, 3, ... of its sandbox
  WallTime time = {};
  enum class Kind { lookup, connection } kind = Kind::lookup;
  enum class Outcome { allowed, denied, failed } outcome = Outcome::allowed;
  std::string name = {};     // what was looked up, or what the connection's client called its host
  std::string address = {};  // of a connection
  uint16_t port = 0;
  std::string rule = {};            // that decided; of a failure: why
  Ground ground = Ground::rule;     // its kind
  uint64_t sent = 0, received = 0;  // bytes, as the sandbox sees it
  int64_t duration_ms = 0;
};

std::string_view to_string(AuditEvent::Outcome outcome);
std::string to_json(const AuditEvent& event);

struct Counters {
  using ByOutcome = std::array<uint64_t, 3>;  // in the order of AuditEvent::Outcome
  ByOutcome lookups{}, connections{};
  std::array<uint64_t, kGrounds> refusals{};
  uint64_t sent = 0, received = 0;  // of connections that have ended
  void add(const AuditEvent& event);
};

// Belongs to one loop.
class Audit {
 public:
  explicit Audit(const io::Executor& executor, Counters& total) : total_(total), news_(executor) {}

  void add(AuditEvent event);
  const std::deque<AuditEvent>& events() const { return events_; }  // the oldest first
  // Returns when there is one after this number; or when cancelled.
  io::Task<> wait_after(uint64_t number);
  uint64_t last() const { return last_; }

 private:
  static constexpr size_t kMost = 512;

  Counters& total_;
  std::deque<AuditEvent> events_;
  uint64_t last_ = 0;
  io::Event news_;
};

}  // namespace osb::egress
