#pragma once

// Room on the disk for a pull, looked at before a byte of it has come.

#include <cstdint>

#include "registry/keeper.h"

namespace osb::registry {

// `bytes` are to come. Code::exhausted says what there is instead: on the disk, or in the budget, when every
// image is gone from it that may go. Layers take more when they are unpacked; how much more is not known yet.
Result<void> check_room(const KeeperSettings& settings, uint64_t bytes);

}  // namespace osb::registry
