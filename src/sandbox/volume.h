#pragma once

// What sandboxes are given from outside.

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace osb::sandbox {

// Something from outside that the sandbox sees.
struct Volume {
  enum class Backend { host, claim, object_store };
  Backend backend = Backend::host;
  std::string source = {};  // host path, claim name or bucket
  std::string mount_path = {}, sub_path = {};
  bool read_only = false;
  bool create = true;                      // of a claim: make the volume when there is none
  bool ephemeral = false;                  // and then let it go with the last sandbox that has it
  std::optional<int64_t> size_bytes = {};  // what it can hold then; absent: as much as there is
  bool operator==(const Volume&) const = default;
};

// A volume that has a name and outlives sandboxes.
struct NamedVolume {
  std::string name = {};
  WallTime created = {};
  bool ephemeral = false;
  uint32_t users = 0;  // sandboxes that have it
  std::optional<int64_t> size_bytes = {};
};

}  // namespace osb::sandbox
