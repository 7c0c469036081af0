#pragma once

// The user namespaces of sandboxes, one per range of ids, made ahead of need and kept for the next sandbox of
// the range.
//
// Belongs to the launcher's thread.

#include <cstdint>
#include <map>

#include "base/fd.h"
#include "launcher/id_ranges.h"

namespace osb::launcher {

class UserNamespaces {
 public:
  // Without root all sandboxes have the same ids, and each gets a namespace of its own.
  enum class Of { range, sandbox };
  explicit UserNamespaces(Of of) : of_(of) {}

  // Borrowed until the next call. `ranges` tells whose is no longer needed: a sandbox that runs is in it.
  Result<int> get(uint32_t range, const IdRanges& ranges);

 private:
  Of of_;
  std::map<uint32_t, Fd> by_range_;  // by first id
  Fd fresh_;                         // of the latest sandbox
};

}  // namespace osb::launcher
