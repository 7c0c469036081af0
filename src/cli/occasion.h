#pragma once

// A server for the occasion: when none answers at the usual address and nobody named another, the first
// command starts one of this user's own, on a port of the loopback that the kernel chose and with a key that
// only this user can read. It ends by itself some time after its last use.

#include <chrono>
#include <string>

#include "cli/arguments.h"
#include "cli/service_record.h"
#include "io/task.h"

namespace osb::cli {

// Everything of it is below one directory.
struct OccasionPlace {
  std::string directory;
  std::string record() const { return directory + "/record"; }
  std::string lock() const { return directory + "/lock"; }
  std::string users() const { return directory + "/users"; }
  std::string log() const { return directory + "/log"; }
  std::string state() const { return directory + "/state"; }
};
// Code::invalid_argument without a home.
Result<OccasionPlace> occasion_place();

// How long it goes on without sandboxes and commands.
std::chrono::seconds occasion_idle();

// Where it answers: `usual` with its address and key. Starts one if need be and says so on standard error.
io::Task<Result<Connection>> occasion_server(Connection usual);

}  // namespace osb::cli
