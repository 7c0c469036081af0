#pragma once

// What every part of execd shares: the loop, the reaper, and the world that commands start in. One per
// process, owned by the daemon; parts keep a reference. Belongs to the loop.

#include <optional>
#include <string>

#include "execd/environment.h"
#include "execd/memory_kills.h"
#include "execd/reaper.h"
#include "execd/spawn.h"
#include "io/task.h"

namespace osb::execd {

// What this sandbox may use, when whoever started it said so.
struct SandboxLimits {
  std::optional<int64_t> cpu_millis, memory_bytes;
};

struct Core {
  Core(io::Executor e, Reaper& r) : executor(e), reaper(r), tasks(e), ready(e) {}

  io::Executor executor;
  Reaper& reaper;
  io::TaskGroup tasks;       // work that outlives the request which started it
  io::Event ready;           // set when env and cwd are final; requests other than /ping wait for it
  bool own_kernel = false;   // gVisor: a process takes tens of milliseconds to start
  bool ended = false;        // the entry process is gone and so is everything else: nothing new starts
  std::string how_it_ended;  // then, for people

  Environment env;        // of the sandbox: what commands and sessions start with, before the env file
  std::string cwd = "/";  // where relative paths begin
  std::string env_file;   // EXECD_ENVS
  // Whom commands and file operations act as when a request does not say; nothing: execd's own user.
  std::optional<Credentials> identity;
  SandboxLimits limits;
  MemoryKills memory_kills;

  // `env` and what the env file says right now.
  Environment command_env() const;
};

// HOME, PATH, USER and EXECD_ENVS when nobody set them.
void add_defaults(Environment& env);

}  // namespace osb::execd
