#pragma once

// The shape of volumes in a create request (422); what may be mounted is decided elsewhere.

#include <string>
#include <vector>

#include "json/decode.h"

namespace osb::api {

struct Volume {
  enum class Backend { host, claim, object_store };
  std::string name, mount_path, sub_path;
  bool read_only = false;
  Backend backend = Backend::host;
  std::string source;  // host path, claim name or bucket
  // Of a claim.
  bool create = true, ephemeral = false;
  std::string storage;
};

// Of a named volume: lower-case letters, digits and inner hyphens.
bool is_claim_name(std::string_view text);

std::vector<Volume> decode_volumes(const json::Field& field);

}  // namespace osb::api
