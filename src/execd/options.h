#pragma once

// The command line, with the environment for what it leaves out.

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "execd/environment.h"

namespace osb::execd {

struct Options {
  bool native = false;  // PID 1 of a native sandbox: descriptors 3 and 4 are the listeners
  // PID 1 of an engine's container, and as in a native sandbox otherwise: where the listeners come from
  std::string container;
  // As in a native sandbox, with another kernel: where connections come from, each as a descriptor
  int connections = -1;
  // PID 1 of an engine's container with a kernel of its own: the file with the secret that opens `port`. "-"
  // for one on another host: it comes by standard input, and the port is on loopback
  std::string secret;
  bool join = false;  // not a daemon at all: see execd/join.h
  // Of an engine's container besides: a port where everybody is let in; 0 for none
  uint16_t open_port = 0;
  int stop_signal = 0;  // which one ends the entry process from outside, besides the usual ones; 0 for none
  std::vector<std::string> shown;           // what of the host it is to see, by its place in here
  std::vector<std::string> parts;           // not a daemon at all: directories to find, see execd/container.h
  int sysinfo_requests = -1;                // where the kernel asks what sysinfo(2) is to answer
  int work_group = -1;                      // what execd starts joins it by writing "0"
  std::optional<int> work_nice;             // what execd starts has this one
  std::optional<uint64_t> work_open_files;  // and may have so many open files
  bool version = false;
  bool help = false;
  uint16_t port = 44772;
  std::string access_token;
  std::string jupyter_host, jupyter_token;
  int log_level = 6;
};

// One or two dashes, the value behind '=' or as the next word. The first word that is no flag ends the flags;
// it and what follows are ignored (whoever starts execd from an image may append a command).
// Code::invalid_argument for unknown flags and unusable values.
Result<Options> parse_options(const std::vector<std::string>& words, const Environment& env);

extern const char kUsage[];

}  // namespace osb::execd
