#pragma once

// How to reach a server, as options of a command. For the files that know the parser library.

#include <CLI/CLI.hpp>
#include <string>

#include "cli/arguments.h"
#include "cli/client_settings.h"

namespace osb::cli {

struct RawConnection {
  std::string server, key;  // "" means what holds for every command
  CLI::App* app = nullptr;
  enum class Short { yes, no };  // whether -s is free

  void options(CLI::App& command, Short letter = Short::yes) {
    app = &command;
    command.add_option(letter == Short::yes ? "-s,--server" : "--server", server,
                       "HOST:PORT of the server (default: as before the command)");
    command.add_option("--api-key", key, "the server's key; better in OPEN_SANDBOX_API_KEY than here");
  }
  Result<Connection> read() const { return connection_for(*app, server, key); }
};

}  // namespace osb::cli
