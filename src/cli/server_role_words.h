#pragma once

// The words with which the launcher starts the server process.

#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace osb::cli {

// The server process, as the launcher starts it: it need not wait for the tree of what people say.
inline std::optional<ServerRoleOptions> parse_server_role(const std::vector<std::string>& words) {
  if (words.size() < 3 || words[1] != "server") return std::nullopt;
  ServerRoleOptions options;
  for (size_t i = 2; i < words.size(); ++i) {
    size_t equals = words[i].find('=');
    std::string name = words[i].substr(0, equals);
    std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    if (words[i] == "--rootless")
      options.rootless = true;
    else if (value.empty())
      return std::nullopt;
    else if (name == "--host-image")
      options.host_image = value;
    else if (name == "--state-dir")
      options.state_dir = value;
    else if (name == "--identity")
      options.identity = value;
    else if (name == "--cgroups")
      options.cgroups = value;
    else
      return std::nullopt;
  }
  if (options.host_image.empty() || options.state_dir.empty()) return std::nullopt;
  return options;
}

}  // namespace osb::cli
