#include "launcher/volume_manifest.h"

#include "base/strings.h"

namespace osb::launcher {

std::string encode(const VolumeManifest& manifest) {
  std::string text = "created " + std::to_string(manifest.created) + "\n";
  if (manifest.size_bytes) text += "size " + std::to_string(*manifest.size_bytes) + "\n";
  return text + (manifest.ephemeral ? "ephemeral\n" : "");
}

Result<VolumeManifest> decode_volume_manifest(std::string_view text) {
  VolumeManifest manifest;
  for (std::string_view line : split(text, '\n')) {
    auto words = split(line, ' ');
    if (line.empty()) continue;
    auto number = words.size() == 2 ? parse_number<int64_t>(words[1]) : std::nullopt;
    if (words[0] == "created" && number && *number >= 0)
      manifest.created = *number;
    else if (words[0] == "size" && number && *number > 0)
      manifest.size_bytes = *number;
    else if (line == "ephemeral")
      manifest.ephemeral = true;
    else
      return fail(Code::corrupt, "a line of a volume's manifest makes no sense");
  }
  return manifest;
}

}  // namespace osb::launcher
