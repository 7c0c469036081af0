#pragma once

// Runs one coroutine on a loop of its own, on this thread, until it returns.

#include "io/task.h"

namespace osb::cli {

int block_on(io::Task<int> task);

// Tasks that live as long as the loop that block_on() runs on this thread; only within it.
io::TaskGroup& tasks_of_loop();

}  // namespace osb::cli
