#pragma once

// The documents that describe an image, in archives and in registries: indexes (one manifest per machine),
// manifests (a configuration and layers), configurations. Read strictly and bounded; both the OCI's and
// Docker's kinds, which differ in their names only.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "image/image.h"
#include "json/decode.h"

namespace osb::image {

inline constexpr size_t kMaxDocument = 4 << 20;
inline constexpr size_t kMaxImageLayers = 250;

// A pointer to a document or a layer.
struct Descriptor {
  std::string type, digest;        // digest: hexadecimal digits
  std::string machine;             // "linux/amd64"; "" when nothing is said
  uint64_t size = 0;               // 0 when nothing is said
  std::vector<std::string> names;  // in archives
};
Result<Descriptor> parse_descriptor(const json::Field& item);
bool is_index(std::string_view media_type);

struct ConfigDocument {
  ImageConfig config;
  std::vector<std::string> diff_ids;  // of the layers, lowest first
};
// Code::unsupported for an image of another machine.
Result<ConfigDocument> parse_config_document(std::string_view text);

struct Manifest {
  Descriptor config;
  std::vector<Descriptor> layers;  // 1 to kMaxImageLayers, all of them tar archives
};
Result<Manifest> parse_manifest(std::string_view text);

// What a registry gives for a name.
struct ManifestOrIndex {
  std::vector<Descriptor> choices;  // of an index
  Manifest manifest;                // when there are no choices
};
Result<ManifestOrIndex> parse_manifest_or_index(std::string_view text);
// Those that may be for this machine ("linux/amd64"): what says so, then what says nothing of machines.
// Code::unsupported with what there is instead.
Result<std::vector<Descriptor>> choose(const std::vector<Descriptor>& choices, std::string_view platform);

// Whether a configuration and a manifest are about the same layers.
Result<void> check_same_layers(size_t in_manifest, size_t in_config);

// Of a document that was read: Code::corrupt with the first thing that is wrong.
Result<void> first_issue(const std::string& document, const json::Issues& issues);

}  // namespace osb::image
