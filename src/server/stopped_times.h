#pragma once

// How long each sandbox has been paused, since this process knows it: limits of the proxy do not run
// meanwhile. Belongs to one loop.

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>

namespace osb::server {

class StoppedTimes {
 public:
  using Clock = std::chrono::steady_clock;

  void paused(const std::string& id);
  void resumed(const std::string& id);
  void forget(const std::string& id) { stops_.erase(id); }
  Clock::duration of(const std::string& id) const;

 private:
  struct Stops {
    Clock::duration before{};
    std::optional<Clock::time_point> since{};
  };
  std::unordered_map<std::string, Stops> stops_;  // of those that were paused at least once
};

}  // namespace osb::server
