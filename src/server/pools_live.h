#pragma once

// What this process knows of a pool.

#include "server/pools.h"

namespace osb::server {

struct Pools::Member {
  Member(const io::Executor& executor, sandbox::PoolMember row_) : row(std::move(row_)), taken(executor) {}
  sandbox::PoolMember row;
  io::Event taken;
};

struct Pools::Live {
  Live(const io::Executor& executor, sandbox::Pool row_, Outcome<sandbox::CreateRequest> shape_)
      : row(std::move(row_)), shape(std::move(shape_)), work(executor), arrived(executor) {}

  std::pair<std::string, std::string> key() const { return {row.owner, row.name}; }
  int64_t available() const { return static_cast<int64_t>(ready.size()); }
  int64_t total() const { return available() + making + adopting + claimed; }
  bool is_resting() const { return retry_at > std::chrono::steady_clock::now(); }
  // The fewest and the most that may wait now, with the bounds of all.
  int64_t most_waiting() const {
    return std::min(std::max(row.capacity.buffer_max, row.capacity.pool_min - claimed),
                    row.capacity.pool_max - claimed);
  }
  int64_t least_waiting() const {
    return std::min(std::max(row.capacity.buffer_min, row.capacity.pool_min - claimed), most_waiting());
  }
  // What somebody waits for comes on top.
  bool wants_more() const {
    if (total() >= row.capacity.pool_max) return false;
    int64_t coming = available() + making + adopting;
    return coming < waiters || coming < (filling ? most_waiting() : least_waiting());
  }
  bool has_too_many() const {
    return available() > waiters && available() > std::max<int64_t>(0, most_waiting());
  }

  sandbox::Pool row;
  Outcome<sandbox::CreateRequest> shape;  // its template
  std::deque<MemberPtr> ready;
  int64_t making = 0;
  int64_t adopting = 0;  // of an earlier server: whether they wait is not known yet
  int64_t claimed = 0;   // as they were counted last, and what was claimed since
  std::chrono::steady_clock::time_point counted = {};
  int64_t waiters = 0;
  bool filling = true;  // from the fewest to the most
  bool removed = false;
  // After failures: what was wrong, and when it is tried again.
  std::string trouble;
  int failures = 0;
  std::chrono::steady_clock::time_point retry_at = {};
  io::Event work;     // there may be something to do
  io::Event arrived;  // somebody who waits should look
};

}  // namespace osb::server
