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

// Whether something has the label of a filter, "name" or "name=value". Several filters at once are a wish:
// Podman gives what fits any of them, and what is removed by a list would be other people's.
bool has_label(const std::map<std::string, std::string>& labels, std::string_view filter);

struct EngineVersion {
  ApiVersion newest, oldest;
  std::string engine;  // for people
  bool podman = false;
  std::string machine = {};  // "amd64"; "" when it does not say
};
Result<EngineVersion> parse_version(std::string_view json);

// Of GET /info: the names of what it can start containers with.
Result<std::vector<std::string>> parse_runtimes(std::string_view json);
// Likewise: how many processors it has; nothing when it does not say.
std::optional<int64_t> parse_processors(std::string_view json);
// Likewise: what it calls itself; "" when it does not say, or something that is no name.
std::string parse_engine_id(std::string_view json);

struct Container {
  std::string id, image;  // the image's id
  std::string name = {};
  std::map<std::string, std::string> labels;
  std::string status;  // created, running, paused, exited, dead, removing
  bool running = false, paused = false, out_of_memory = false;
  int exit_code = 0;
  bool finished = false;  // the engine knows when it ended
  int64_t pid = 0;        // of its first process; 0: it does not run
  std::string error;      // the engine's word about the end
  std::map<std::string, std::string> addresses =
      {};                                          // IPv4, by the network's name; none while it does not run
  std::map<uint16_t, std::string> published = {};  // TCP ports of it, and where the host has them
  std::string network_mode = {};
  std::string reference = {};  // the image as whoever made it called it
  std::string created = {};
  std::vector<std::string> command = {};  // behind its entry point
  std::vector<std::string> env = {};      // NAME=value, those of its image included
  std::string user = {};                  // of its first process, as its image or whoever made it has it
};
// The id of the container whose network it shares; "": none.
std::string shared_network(const Container& container);
// On this network, or on any.
std::optional<std::string> address_on(const Container& container, const std::string& network);
Result<Container> parse_container(std::string_view json);

// Of each container in a list; those of which nothing can be read are left out.
struct Listed {
  std::string id;
  std::map<std::string, std::string> labels;
  std::string state = {};  // as in Container::status; "" when it does not say
};
Result<std::vector<Listed>> parse_container_list(std::string_view json);
Result<std::vector<std::map<std::string, std::string>>> parse_labels_of_list(std::string_view json);

struct Image {
  std::string id, platform;
  std::string parent = {};  // of one that was committed
  std::vector<std::string> tags = {};
  std::map<std::string, std::string> labels = {};
  std::vector<std::string> env = {};  // NAME=value
  std::string stop_signal = {};       // as its author wrote it; "": the usual one
  uint64_t bytes = 0;                 // with everything below
  std::string name = {};              // as a container is to call it; "": by its id
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

// One line of GET /events: something happened to a container.
struct EngineEvent {
  enum class Kind { paused, unpaused, died, destroyed, other };
  Kind kind = Kind::other;
  std::string container;                           // the engine's id of it
  std::map<std::string, std::string> labels = {};  // its own, and words of the engine's besides
};
Result<EngineEvent> parse_event(std::string_view json);

// One line of a pull: what is done, or what went wrong.
// Whether an engine that does not find something speaks of an image: it has one status for all that is
// missing.
bool says_no_image(std::string_view message);

struct PullLine {
  std::string error;
  std::string text;                 // "a1b2c3: Downloading"
  std::string id, status;           // its two parts; the id is often a layer's
  uint64_t current = 0, total = 0;  // bytes; 0: it does not say
};
Result<PullLine> parse_pull_line(std::string_view json);

}  // namespace osb::docker
