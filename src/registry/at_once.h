#pragma once

// Several things on their way at once: a process for each, because calls here block (connection.h). What one
// of them fails with is the failure of all.

#include <functional>
#include <vector>

#include "base/error.h"

namespace osb::registry {

using Told = std::function<void(uint64_t bytes)>;

struct Job {
  // Runs in a process of its own, with a copy of our memory. Tells how many bytes are done.
  std::function<Result<void>(const Told& told)> work;
  uint64_t size = 0;  // bytes in all
};

// `told` hears of all of them together. The caller has one thread.
Result<void> run_at_once(const std::vector<Job>& jobs, const Told& told);

// What the network does wrong is tried again, with growing pauses, as long as something comes of it:
// `progress` says how far it is. So many attempts without any.
inline constexpr int kMostAttempts = 6;
Result<void> try_again(const std::function<Result<void>()>& attempt,
                       const std::function<uint64_t()>& progress, int most = kMostAttempts);

}  // namespace osb::registry
