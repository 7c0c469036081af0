#pragma once

// execd as a process: set-up, the loop, the listeners, the end.

#include <functional>

#include "execd/api.h"
#include "execd/command_routes.h"
#include "execd/options.h"
#include "execd/workers.h"

namespace osb::execd {

// What higher layers may use; all of it lives as long as the process.
struct Parts {
  Core& core;
  Api& api;
  Commands& commands;
  CommandRoutes& command_routes;
  Workers& workers;
  const Options& options;
};

// Adds routes of higher layers before anything is served. Whatever it makes must live as long as the process.
using Extend = std::function<void(Parts& parts)>;

int daemon_main(int argc, char** argv, const Extend& extend = {});

}  // namespace osb::execd
