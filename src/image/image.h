#pragma once

// An image of this host: layers in the store, and what the image says about the processes that run in it.
// Values.

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace osb::image {

struct ImageConfig {
  std::vector<std::pair<std::string, std::string>> env;
  std::string user;     // as the image writes it: "", "1000", "app", "app:staff"
  std::string workdir;  // "" means /
  std::vector<std::string> entrypoint, cmd;
  std::map<std::string, std::string> labels;
  std::vector<std::string> ports;  // that it says it listens on: "8080/tcp"
  // What `user` is in the image's own accounts, looked up when it was imported.
  uint32_t uid = 0, gid = 0;
  std::string user_name, home;  // "" when the accounts do not know the id

  bool operator==(const ImageConfig&) const = default;
};

// What a sandbox had changed of one of its overlays (decision 30), as a part of an image.
struct SandboxLayer {
  std::string overlay, digest;
  bool operator==(const SandboxLayer&) const = default;
};

bool is_overlay_name(std::string_view name);

struct Image {
  std::string id;                   // digest of the layers and the config
  std::vector<std::string> layers;  // digests of the unpacked layers, lowest first
  ImageConfig config;
  WallTime imported{};
  uint64_t bytes = 0;    // of all files
  uint64_t entries = 0;  // files, directories, links
  // Digest of the manifest that a registry gave for it; "" for one that came from a file.
  std::string manifest = {};
  // Of one that was made of a sandbox: what lies over the layers, topmost first; whose sandbox it was, and
  // nobody else sees the image; and the local image without layers of its own (`host`, a directory) that is
  // below, if it is one.
  std::vector<SandboxLayer> over = {};
  std::string owner = {}, base = {};

  bool is_for(std::string_view who) const { return owner.empty() || owner == who; }
};

// The "config" member of an OCI or Docker image configuration; unknown members are ignored.
Result<ImageConfig> decode_oci_config(const boost::json::value& config);

boost::json::value to_json(const Image& image);
Result<Image> image_from_json(const boost::json::value& value);

// Named by what it is: the same layers and config give the same id on every host.
std::string compute_id(const Image& image);

// "NAME=value".
Result<std::pair<std::string, std::string>> parse_env(std::string_view text);

}  // namespace osb::image
