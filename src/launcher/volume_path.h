#pragma once

// How a plan names a volume: owner/name, and what of it, as directories behind these.

#include <optional>
#include <string>
#include <string_view>

namespace osb::launcher {

struct VolumePath {
  std::string owner, name;
  std::string below = {};  // "": all of it

  std::string volume() const { return owner + "/" + name; }
};

// Lower-case letters, digits and inner hyphens, so that it is the name of a directory and never one that
// begins with a dot.
bool is_volume_name(std::string_view name);

// Nothing for anything else: no empty part, ".", "..", NUL.
std::optional<VolumePath> parse_volume_path(std::string_view text);

}  // namespace osb::launcher
