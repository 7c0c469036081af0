#pragma once

// Renewal by use: a sandbox that asked for it when it was made lives for so long again whenever somebody uses
// one of its ports. At most one renewal per sandbox and interval, so that a busy port costs a look into a
// table and not a commit per request. Nobody who uses a port waits for it or hears that it failed. Belongs to
// one loop.

#include <chrono>
#include <string>
#include <unordered_map>

#include "io/task.h"
#include "sandbox/sandbox.h"
#include "server/lifecycle.h"

namespace osb::server {

class AccessRenewal {
 public:
  static constexpr size_t kMaxKept = 8192;
  using Time = std::chrono::steady_clock::time_point;

  AccessRenewal(io::Executor executor, Lifecycle& lifecycle, std::chrono::seconds interval)
      : lifecycle_(lifecycle), interval_(interval), tasks_(std::move(executor)) {}

  void accessed(const sandbox::Sandbox& row);
  // Whether it was renewed so lately that a use changes nothing.
  bool rests(const std::string& id) const;
  io::Task<> close() { return tasks_.close(); }

 private:
  Task<> renew(std::string id, std::chrono::seconds by);
  bool has_room(Time now);

  Lifecycle& lifecycle_;
  const std::chrono::seconds interval_;
  std::unordered_map<std::string, Time> renewed_;  // when each was last
  io::TaskGroup tasks_;
};

// How long a use renews the sandbox for; nothing: not at all.
std::optional<std::chrono::seconds> renewal_of(const sandbox::Sandbox& row);

}  // namespace osb::server
