#include "launcher/snapshot_manifest.h"

#include "base/hex.h"
#include "base/strings.h"
#include "launcher/plan.h"
#include "launcher/settings.h"

namespace osb::launcher {
namespace {

bool is_overlay_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.find_first_of("/.\n ") == name.npos;
}

Result<void> read_line(std::string_view line, Manifest& manifest) {
  auto words = split(line, ' ');
  auto odd = [&] { return fail(Code::corrupt, "a line of a snapshot makes no sense"); };
  std::string_view kind = words[0];
  if (kind == "boot" && words.size() == 2) {
    manifest.boot = words[1];
  } else if (kind == "image" && words.size() == 2 && is_hex_digest(words[1])) {
    manifest.image = words[1];
  } else if (kind == "size" && words.size() == 3) {
    auto bytes = parse_number<uint64_t>(words[1]), entries = parse_number<uint64_t>(words[2]);
    if (!bytes || !entries) return odd();
    manifest.bytes = *bytes;
    manifest.entries = *entries;
  } else if ((kind == "new" || kind == "layer") && words.size() == 3) {
    if (!is_overlay_name(words[1]) || !is_hex_digest(words[2])) return odd();
    if (manifest.layers.size() >= kMostSnapshotLayers) return odd();
    manifest.layers.push_back({std::string(words[1]), std::string(words[2]), kind == "new"});
  } else {
    return odd();
  }
  return {};
}

}  // namespace

std::string encode(const Manifest& manifest) {
  std::string text;
  if (!manifest.boot.empty()) text += "boot " + manifest.boot + "\n";
  if (!manifest.image.empty()) text += "image " + manifest.image + "\n";
  text += "size " + std::to_string(manifest.bytes) + " " + std::to_string(manifest.entries) + "\n";
  for (const SnapshotLayer& layer : manifest.layers)
    text += (layer.is_new ? "new " : "layer ") + layer.overlay + " " + layer.digest + "\n";
  return text;
}

Result<Manifest> decode_manifest(std::string_view text) {
  Manifest manifest;
  for (std::string_view line : split(text, '\n')) {
    if (!line.empty()) TRY(read_line(line, manifest));
  }
  return manifest;
}

std::string used_layers(const Plan& plan, const std::string& state_dir) {
  const std::string top = state_dir + "/" + state::kSnapshotLayers + "/";
  std::string text;
  for (const Step& step : plan.steps) {
    for (const std::string& lower : step.lowers) {
      std::string_view below = lower;
      if (!below.starts_with(top)) continue;
      below.remove_prefix(top.size());
      if (is_hex_digest(below)) text += "layer " + step.name + " " + std::string(below) + "\n";
    }
  }
  return text;
}

}  // namespace osb::launcher
