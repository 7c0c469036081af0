#pragma once

// Uses that others have seen: gateways push them into a list of Redis, from which they are taken here and
// counted like uses of the proxy.
//
// Nothing is kept in memory: a consumer takes the next one when it has dealt with the last, and one for a
// sandbox that was renewed a moment ago costs a look into a table. Without Redis, at the start or later,
// sandboxes are renewed by uses of the proxy alone, and it is tried again. Belongs to one loop.

#include <chrono>
#include <optional>
#include <string>

#include "base/clock.h"
#include "io/task.h"
#include "server/access_renewal.h"
#include "server/redis_address.h"
#include "store/repository.h"

namespace osb::server {

class RedisClient;

class RenewIntents {
 public:
  struct Settings {
    RedisAddress address;
    std::string queue_key;
    int64_t consumers = 8;
  };
  // One that was seen longer ago says nothing about now.
  static constexpr std::chrono::seconds kMaxAge{300};

  RenewIntents(io::Executor executor, store::Repository& store, AccessRenewal& renewal, Settings settings,
               const Clock& clock = Clock::system())
      : store_(store), renewal_(renewal), settings_(std::move(settings)), clock_(clock), tasks_(executor) {}

  void start();
  io::Task<> close() { return tasks_.close(); }

  // Why nothing is taken from Redis now; success as long as somebody does.
  Result<void> health() const;
  // One of the list, as it was pushed.
  io::Task<> handle(std::string payload);

  struct Dropped {
    uint64_t malformed = 0, old = 0;
  };
  const Dropped& dropped() const { return dropped_; }

 private:
  io::Task<> consume();
  io::Task<Error> consume_from(RedisClient& redis, io::Duration& again);
  void found();
  void lost(const Error& why);
  void tell_dropped();

  store::Repository& store_;
  AccessRenewal& renewal_;
  const Settings settings_;
  const Clock& clock_;
  int64_t connected_ = 0;
  std::optional<Error> away_ = Error{Code::unavailable, 0, "no connection yet"};
  Dropped dropped_, told_;
  std::chrono::steady_clock::time_point next_tell_{};
  io::TaskGroup tasks_;
};

}  // namespace osb::server
