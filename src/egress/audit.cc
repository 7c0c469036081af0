#include "egress/audit.h"

#include "json/escape.h"

namespace osb::egress {
namespace {

void put(std::string& out, const char* name, std::string_view text) {
  if (text.empty()) return;
  out.append(",\"").append(name).append("\":");
  json::append_string(out, text);
}

void put(std::string& out, const char* name, uint64_t number) {
  out.append(",\"").append(name).append("\":").append(std::to_string(number));
}

}  // namespace

std::string_view to_string(AuditEvent::Outcome outcome) {
  switch (outcome) {
    case AuditEvent::Outcome::allowed:
      return "allowed";
    case AuditEvent::Outcome::denied:
      return "denied";
    case AuditEvent::Outcome::failed:
      return "failed";
  }
  return "failed";
}

std::string to_json(const AuditEvent& event) {
  bool lookup = event.kind == AuditEvent::Kind::lookup;
  std::string out = "{\"number\":" + std::to_string(event.number);
  put(out, "time", format_time(event.time, 3));
  put(out, "kind", lookup ? "lookup" : "connection");
  put(out, "outcome", to_string(event.outcome));
  put(out, "name", event.name);
  put(out, "address", event.address);
  if (!lookup) put(out, "port", event.port);
  put(out, "rule", event.rule);
  if (!lookup) {
    put(out, "sentBytes", event.sent);
    put(out, "receivedBytes", event.received);
  }
  put(out, "durationMs", static_cast<uint64_t>(event.duration_ms));
  return out + "}";
}

void Counters::add(const AuditEvent& event) {
  bool lookup = event.kind == AuditEvent::Kind::lookup;
  ++(lookup ? lookups : connections)[static_cast<size_t>(event.outcome)];
  if (event.outcome == AuditEvent::Outcome::denied) ++refusals[static_cast<size_t>(event.ground)];
  sent += event.sent;
  received += event.received;
}

void Audit::add(AuditEvent event) {
  event.number = ++last_;
  if (event.time == WallTime()) event.time = wall_now();
  total_.add(event);
  events_.push_back(std::move(event));
  if (events_.size() > kMost) events_.pop_front();
  news_.set();
  news_.reset();  // wakes whoever waits now, and nobody later
}

io::Task<> Audit::wait_after(uint64_t number) {
  while (last_ <= number) co_await news_.wait();
}

}  // namespace osb::egress
