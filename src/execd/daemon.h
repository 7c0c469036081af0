#pragma once

// execd as a process: set-up, the loop, the listeners, the end.

#include <functional>

#include "execd/api.h"

namespace osb::execd {

// Adds routes of higher layers before anything is served. Whatever it makes must live as long as the process.
using Extend = std::function<void(Core& core, Api& api)>;

int daemon_main(int argc, char** argv, const Extend& extend = {});

}  // namespace osb::execd
