#pragma once

// The command line of `osb`, as values. The only file that knows the parser library is arguments.cc.

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/values.h"

namespace osb::cli {

struct Connection {
  ServerAddress server;
  std::string api_key;  // "" sends none
};

struct RunOptions {
  Connection connection;
  std::string image;
  std::vector<std::string> command;  // passed as it is, no shell in between
  std::vector<Variable> env;
  std::optional<std::chrono::milliseconds> timeout;  // of the command
  std::string cpu, memory, workdir;                  // "" means the server's default
  bool keep = false;                                 // leave the sandbox there afterwards
};

struct LsOptions {
  Connection connection;
  bool json = false;
};

struct RmOptions {
  Connection connection;
  std::vector<std::string> ids;
  bool all = false;
};

struct DoctorOptions {
  Connection connection;
  std::string state_dir;
  bool attack = false;
};

// `osb server`, started by the launcher; everything else is inherited
struct ServerRoleOptions {
  std::string host_image;  // version of the image `host` that was prepared for it
};

// `opensandbox-server`
struct ServeOptions {
  std::string config;  // "" means the default places
};

struct InitConfigOptions {
  std::string path;     // "" means the default place
  std::string example;  // "" means the commented skeleton
  bool force = false;
};

// The parser already knows what to print (help, version, a usage error) and how to exit.
struct PrintAndExit {
  std::string out, err;
  int status = 0;
};

using Command = std::variant<PrintAndExit, RunOptions, LsOptions, RmOptions, DoctorOptions, ServerRoleOptions,
                             ServeOptions, InitConfigOptions>;

Command parse_osb_arguments(int argc, const char* const* argv);
Command parse_server_arguments(int argc, const char* const* argv);

}  // namespace osb::cli
