#pragma once

// Runs one coroutine on a loop of its own, on this thread, until it returns.

#include "io/task.h"

namespace osb::cli {

int block_on(io::Task<int> task);

}  // namespace osb::cli
