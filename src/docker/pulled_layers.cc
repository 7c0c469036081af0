#include "docker/pulled_layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/image_library.h"

namespace osb::docker {
namespace {

// An engine takes no image with more than half as many.
constexpr size_t kMostLayers = 256;

// What an engine says of layers that have to come. Of other things, as the tag, it says something else.
enum class Step { waits, comes, here, unpacked, other };
Step step_of(std::string_view status) {
  if (status == "Pulling fs layer" || status == "Waiting") return Step::waits;
  if (status == "Downloading") return Step::comes;
  if (status == "Verifying Checksum" || status == "Download complete" || status == "Extracting")
    return Step::here;
  return status == "Pull complete" ? Step::unpacked : Step::other;
}

}  // namespace

std::string PulledLayers::hear(const PullLine& line) {
  Step step = step_of(line.status);
  bool is_layer = step != Step::other && !line.id.empty();
  if (is_layer && (layers_.size() < kMostLayers || layers_.contains(line.id))) {
    Layer& layer = layers_[line.id];
    if (step == Step::comes) {
      layer.total = std::max({layer.total, line.total, line.current});
      layer.downloaded = line.current;
    }
    layer.is_here |= step == Step::here || step == Step::unpacked;
    layer.is_unpacked |= step == Step::unpacked;
    if (layer.is_here) layer.downloaded = layer.total;
  }
  return layers_.empty() ? line.text : text();
}

std::string PulledLayers::text() const {
  runtime::PullProgress sum{.layers = layers_.size()};
  size_t unknown = 0, here = 0, unpacked = 0;
  for (const auto& [id, layer] : layers_) {
    sum.downloaded += layer.downloaded;
    sum.total += layer.total;
    here += layer.is_here;
    unpacked += layer.is_unpacked;
    unknown += layer.total == 0 && !layer.is_here;
  }
  if (here == layers_.size()) sum.unpacked = std::min(unpacked + 1, here);
  std::string out = runtime::to_text(sum);
  if (unknown > 0) out += fmt::format(", {} of {} layers not begun", unknown, layers_.size());
  return out;
}

}  // namespace osb::docker
