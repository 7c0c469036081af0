#pragma once

// The least a kernel must do for one sandbox, with the quickest technique known to us and nothing else: no
// API, no limits, no seccomp, no user namespace, no store. What our service adds on top is measured against
// it.
//
// Single-threaded (setns of a mount namespace needs that). A step that fails ends the program and names
// itself: a floor that quietly did less would be a wrong yardstick.

#include <sys/types.h>

#include <string>

namespace floorbench {

// The directory for uppers, and the root shown below them.
struct Place {
  std::string dir;    // on the file system that is to hold the uppers
  std::string lower;  // must contain /usr/bin/bash and /proc
};

[[noreturn]] void die(const char* step);

// Makes the place and gives this process a mount namespace that holds nothing but the root file system. Every
// sandbox copies its parent's mount table and drops it again after the pivot, so a short table is part of the
// technique.
void prepare(const Place& place);

// Empty namespaces with a root of their own; holds a process that only waits. Movable in spirit, copied by
// value: plain handles, released by destroy().
struct Sandbox {
  pid_t pid = -1;
  int pidfd = -1;
  std::string upper;
  std::string work;
};

Sandbox create(const Place& place);
// Ends the processes, waits for them and removes the upper.
void destroy(Sandbox& sandbox);

// A command running in a sandbox, a child of this program.
struct Command {
  pid_t pid = -1;
  int out = -1;  // the read end of its standard output
};

Command enter(const Sandbox& sandbox, const char* script);
void wait_first_byte(const Command& command);
// Reads the rest, waits for the process and refuses an exit code other than 0.
void finish(Command& command);

}  // namespace floorbench
