#pragma once

// What holds for every command of a client: flags before the command, then the environment, then a file of
// the user's, then what is usual. The names are those of the published client, so that its files keep
// working. For the files that know the parser library.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"

namespace osb::cli {

struct ClientSettings {
  std::string api_key, domain = "localhost:8080", protocol = "http";
  int64_t request_timeout = 30;  // seconds
  bool use_server_proxy = false, color = true;
  std::optional<std::string> default_image, default_timeout;
  std::string config_path;
  bool config_file_exists = false;
};

// Of the root: `--domain` and its neighbours.
void add_client_options(CLI::App& root);

// For any command below the root, after parsing.
Result<ClientSettings> client_settings(const CLI::App& command);

}  // namespace osb::cli
