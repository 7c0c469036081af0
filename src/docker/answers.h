#pragma once

// What an engine answers, read from its JSON. An engine is trusted with its containers and with nothing else:
// whatever is missing or of another type is Code::corrupt, and texts that go into messages are cut.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::docker {

// "1.41" as a number that can be compared.
struct ApiVersion {
  int major = 0, minor = 0;
  auto operator<=>(const ApiVersion&) const = default;
};
std::optional<ApiVersion> parse_api_version(std::string_view text);
std::string to_string(ApiVersion version);

struct EngineVersion {
  ApiVersion newest, oldest;
  std::string engine;  // for people
};
Result<EngineVersion> parse_version(std::string_view json);

struct Container {
  std::string id;
  std::map<std::string, std::string> labels;
  std::string status;  // created, running, paused, exited, dead, removing
  bool running = false, paused = false, out_of_memory = false;
  int exit_code = 0;
  std::string error;  // the engine's word about the end
};
Result<Container> parse_container(std::string_view json);

// Of each container in a list; those of which nothing can be read are left out.
Result<std::vector<std::map<std::string, std::string>>> parse_labels_of_list(std::string_view json);

struct Image {
  std::string id, platform;
};
Result<Image> parse_image(std::string_view json);

Result<std::string> parse_created(std::string_view json);    // the id
Result<int> parse_wait(std::string_view json);               // the status
std::string parse_error(std::string_view body, int status);  // what an engine says of its refusal

// One line of a pull: what is done, or what went wrong.
struct PullLine {
  std::string error;
  std::string text;  // "a1b2c3: Downloading"
};
Result<PullLine> parse_pull_line(std::string_view json);

}  // namespace osb::docker
