#include "server/stopped_times.h"

namespace osb::server {

void StoppedTimes::paused(const std::string& id) {
  Stops& stops = stops_[id];
  if (!stops.since) stops.since = Clock::now();
}

void StoppedTimes::resumed(const std::string& id) {
  auto found = stops_.find(id);
  if (found == stops_.end() || !found->second.since) return;
  found->second.before += Clock::now() - *found->second.since;
  found->second.since.reset();
}

StoppedTimes::Clock::duration StoppedTimes::of(const std::string& id) const {
  auto found = stops_.find(id);
  if (found == stops_.end()) return {};
  const Stops& stops = found->second;
  return stops.since ? stops.before + (Clock::now() - *stops.since) : stops.before;
}

}  // namespace osb::server
