#pragma once

// Which names have led a sandbox to which addresses, and for how long that counts: an address that nobody
// looked up is a number that somebody made up.

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "sandbox/egress_target.h"

namespace osb::egress {

using sandbox::IpAddress;

class Learned {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The time of a record and a minute, at least one and at most six: programs connect a little later than
  // they look up, and keep what they know for longer than they should.
  void learn(const IpAddress& address, const std::string& name, uint32_t ttl_seconds, Time now);
  // The latest first.
  std::vector<std::string> names(const IpAddress& address, Time now) const;
  size_t size() const { return entries_.size(); }

 private:
  static constexpr size_t kMost = 4096;  // addresses of one sandbox
  static constexpr size_t kMostNames = 8;

  struct Entry {
    std::string name;
    Time until;
  };
  void make_room(Time now);

  std::map<IpAddress, std::vector<Entry>> entries_;
};

}  // namespace osb::egress
