#pragma once

// How to reach a server, as options of a command. For the files that know the parser library.

#include <CLI/CLI.hpp>
#include <string>

#include "cli/arguments.h"

namespace osb::cli {

struct RawConnection {
  std::string server = "localhost:8080", key;

  void options(CLI::App& app) {
    app.add_option("-s,--server", server, "HOST:PORT of the server")
        ->envname("OPEN_SANDBOX_DOMAIN")
        ->capture_default_str();
    app.add_option("--api-key", key, "the server's key; better in the environment than here")
        ->envname("OPEN_SANDBOX_API_KEY");
  }
  Result<Connection> read() const { return Connection{TRY(parse_server_address(server)), key}; }
};

}  // namespace osb::cli
