#pragma once

// Values as people type them on a command line: durations, variables, server addresses.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace osb::cli {

// "90s", "10m", "1h30m", "250ms"; a plain integer counts seconds. Zero is refused.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
std::string print_duration(std::chrono::milliseconds duration);  // "1h30m", "1.2 s", "34.5 ms"

using Variable = std::pair<std::string, std::string>;
// "NAME=value", or "NAME" alone for the caller's own value of it.
Result<Variable> parse_variable(std::string_view text);

// "SOURCE:PATH", "SOURCE:PATH:ro": what of the server's host a sandbox gets, and where.
struct VolumeArgument {
  std::string source;  // a path of the host, or the name of a volume
  std::string path;
  bool read_only = false;
};
Result<VolumeArgument> parse_volume(std::string_view text);

// "1000", "1000:100": a user and a group; the group of the same number when none is named.
Result<std::pair<uint32_t, uint32_t>> parse_user(std::string_view text);

// "512Mi", "8G", "1000000": a number of bytes, with k, M, G, T for thousands and Ki, Mi, Gi, Ti for 1024s.
Result<uint64_t> parse_bytes(std::string_view text);
std::string print_bytes(uint64_t bytes);  // "512 B", "1.5 MB"

// Where a server answers: "localhost:8080", "https://sandboxes.example", "[::1]:9000/prefix".
struct ServerAddress {
  std::string host;  // without brackets
  uint16_t port = 80;
  std::string prefix;  // path in front of every route, "" or "/something"
  bool tls = false;

  std::string authority() const;  // for the Host header and for people
};
Result<ServerAddress> parse_server_address(std::string_view text);

// What follows the first "--" belongs to the sandbox word by word; CLI parsers drop or reorder such words.
struct SplitArguments {
  std::vector<std::string> ours;
  std::optional<std::vector<std::string>> theirs;  // nothing when there was no "--"
};
SplitArguments split_at_dashes(int argc, const char* const* argv);

}  // namespace osb::cli
