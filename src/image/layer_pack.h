#pragma once

// A layer of this host as a registry takes it: a compressed tar archive, made by a worker that has no right
// on the host (worker.h). The same layer gives the same bytes.

#include <cstdint>
#include <optional>
#include <string>

#include "image/layer_stream.h"
#include "image/worker.h"

namespace osb::image {

// What a layer is in a registry.
struct PackedForm {
  std::string digest;   // of the compressed bytes
  uint64_t size = 0;    // of them
  std::string diff_id;  // of what they decompress to
  Compression compression = Compression::gzip;
  bool operator==(const PackedForm&) const = default;
};

// Into `file`, which is empty and open for writing. The layer is a directory with owners as in the image.
Result<PackedForm> pack_layer(const std::string& layer, int file, const WorkerWatch& watch);

// Noted at the layer itself: what it was when it came here, and what packing made of it. As root.
enum class FormKind { came, packed };
std::optional<PackedForm> known_form(const std::string& layer, FormKind kind);
Result<void> note_form(const std::string& layer, FormKind kind, const PackedForm& form);

std::string encode(const PackedForm& form);
std::optional<PackedForm> parse_form(std::string_view text);

// "application/vnd.oci.image.layer.v1.tar+gzip"
std::string media_type_of(Compression compression);

}  // namespace osb::image
