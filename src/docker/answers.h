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
#include "sandbox/snapshot.h"

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
  bool podman = false;
  std::string machine = {};  // "amd64"; "" when it does not say
};
Result<EngineVersion> parse_version(std::string_view json);

// Of GET /info: the names of what it can start containers with.
Result<std::vector<std::string>> parse_runtimes(std::string_view json);

struct Container {
  std::string id, image;  // the image's id
  std::string name = {};
  std::map<std::string, std::string> labels;
  std::string status;  // created, running, paused, exited, dead, removing
  bool running = false, paused = false, out_of_memory = false;
  int exit_code = 0;
  int64_t pid = 0;    // of its first process; 0: it does not run
  std::string error;  // the engine's word about the end
  std::map<std::string, std::string> addresses =
      {};                                          // IPv4, by the network's name; none while it does not run
  std::map<uint16_t, std::string> published = {};  // TCP ports of it, and where the host has them
  std::string network_mode = {};
  std::string reference = {};  // the image as whoever made it called it
  std::string created = {};
  std::vector<std::string> command = {};  // behind its entry point
};
// On this network, or on any.
std::optional<std::string> address_on(const Container& container, const std::string& network);
Result<Container> parse_container(std::string_view json);

// Of each container in a list; those of which nothing can be read are left out.
struct Listed {
  std::string id;
  std::map<std::string, std::string> labels;
};
Result<std::vector<Listed>> parse_container_list(std::string_view json);
Result<std::vector<std::map<std::string, std::string>>> parse_labels_of_list(std::string_view json);

struct Image {
  std::string id, platform;
  std::string parent = {};  // of one that was committed
  std::vector<std::string> tags = {};
  std::map<std::string, std::string> labels = {};
  uint64_t bytes = 0;  // with everything below
};
Result<Image> parse_image(std::string_view json);
// Ids, names and labels; what cannot be read is left out.
Result<std::vector<Image>> parse_image_list(std::string_view json);

struct Volume {
  std::string name, driver, created;
  std::string mountpoint = {};  // by the engine's own files; "" when it does not say
  bool mounted_on_use =
      false;  // what is at the mount point is something else while no container runs with it
  std::map<std::string, std::string> labels = {};
};
Result<Volume> parse_volume(std::string_view json);
Result<std::vector<Volume>> parse_volume_list(std::string_view json);

// What a container has changed of its image's files.
Result<std::vector<sandbox::FileChange>> parse_changes(std::string_view json);

// What a container without a terminal has written: pieces with a head of eight bytes each.
Result<std::string> parse_logs(std::string_view bytes);

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
