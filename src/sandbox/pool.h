#pragma once

// A pool: sandboxes of one shape that run and wait, so that whoever wants one need not wait for it to be
// made.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace osb::sandbox {

// How many. Waiting ones are made when there are fewer than buffer_min, until there are buffer_max; all
// together (waiting, claimed, being made) are at least pool_min, as far as buffers go, and at most pool_max.
struct PoolCapacity {
  int64_t buffer_min = 0, buffer_max = 0;
  int64_t pool_min = 0, pool_max = 0;

  friend bool operator==(const PoolCapacity&, const PoolCapacity&) = default;
};

struct Pool {
  std::string id = {};     // of this one: another of the same name is another pool
  std::string owner = {};  // "": the server itself
  std::string name = {};
  std::string shape = {};  // the template, as it was sent
  PoolCapacity capacity = {};
  WallTime created = {};
};

// A sandbox of a pool that nobody has claimed. Its id is chosen already: an engine cannot change the label.
struct PoolMember {
  std::string handle = {};
  std::string id = {};    // of the sandbox that it becomes; empty: made by a version that chose it then
  std::string pool = {};  // its id
  std::string runtime = {};
  std::string identity = {};  // empty: it is being made
  std::string warmth = {};    // runtime::Warm::shape
  WallTime created = {};
};

// As it is at this moment.
struct PoolStatus {
  int64_t total = 0;      // all that follow
  int64_t allocated = 0;  // claimed, and not deleted yet
  int64_t available = 0;  // run and wait
  int64_t pending = 0;    // are being made
  // Why none could be made the last time, and when that is tried again.
  std::string message = {};
  std::optional<WallTime> retry_at = {};
};

struct PoolView {
  Pool pool;
  PoolStatus status;
};

// The pool from which a sandbox was claimed: in its extensions, and shown otherwise.
inline constexpr char kPoolExtension[] = "poolRef";

}  // namespace osb::sandbox
