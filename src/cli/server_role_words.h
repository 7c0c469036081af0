#pragma once

// The words with which our own processes start each other, and that nobody types.

#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"

namespace osb::cli {

// The server process, as the launcher starts it: it need not wait for the tree of what people say. The words
// are those behind the program's name.
inline std::optional<ServerRoleOptions> parse_server_role(const std::vector<std::string>& words) {
  if (words.size() < 3 || words[0] != "server") return std::nullopt;
  ServerRoleOptions options;
  for (size_t i = 1; i < words.size(); ++i) {
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

// The parent of a server for the occasion, as osb starts it.
inline std::optional<OccasionOptions> parse_occasion(const std::vector<std::string>& words) {
  constexpr std::string_view kLock = "--lock=";
  if (words.size() != 2 || words[0] != "occasion" || !words[1].starts_with(kLock)) return std::nullopt;
  auto lock = parse_number<int>(std::string_view(words[1]).substr(kLock.size()));
  return lock ? std::optional(OccasionOptions{*lock}) : std::nullopt;
}

}  // namespace osb::cli
