#include "image/budget.h"

#include <algorithm>
#include <set>

#include "image/layer_import.h"
#include "image/pull_reference.h"

namespace osb::image {
namespace {

std::vector<std::string> names_of(const Index& index, const std::string& id) {
  std::vector<std::string> names;
  for (const auto& [name, named] : index.names) {
    if (named == id) names.push_back(name);
  }
  return names;
}

// Somebody who imported the same image under a name of their own wants to keep it.
bool can_come_again(const std::vector<std::string>& names) {
  return std::ranges::all_of(names, [](const std::string& name) {
    auto reference = parse_pull_reference(name, kDockerHub);
    return reference && reference->name() == name;
  });
}

// Those that may go, the oldest first.
Result<std::vector<Image>> removable(const Store& store, const std::string& keep) {
  std::vector<Image> out;
  for (const auto& [id, image] : store.index().images) {
    if (image.manifest.empty() || id == keep || !can_come_again(names_of(store.index(), id))) continue;
    if (!TRY(store.users_of(id)).empty()) continue;
    out.push_back(image);
  }
  std::ranges::sort(out, {}, &Image::imported);
  return out;
}

Result<uint64_t> bytes_without(const Store& store, const std::vector<Image>& without) {
  std::set<std::string> layers, of_sandboxes;
  for (const auto& [id, image] : store.index().images) {
    if (std::ranges::find(without, id, &Image::id) != without.end()) continue;
    layers.insert(image.layers.begin(), image.layers.end());
    for (const SandboxLayer& layer : image.over) of_sandboxes.insert(layer.digest);
  }
  uint64_t bytes = 0;
  for (const std::string& layer : layers) bytes += TRY(known_layer(store, layer)).bytes;
  // What a crash of the host took along takes no room.
  for (const std::string& layer : of_sandboxes) {
    if (auto known = layer_at(store.sandbox_layer_path(layer), layer)) bytes += known->bytes;
  }
  return bytes;
}

}  // namespace

Result<uint64_t> bytes_in_store(const Store& store) { return bytes_without(store, {}); }

Result<uint64_t> bytes_that_stay(const Store& store) {
  return bytes_without(store, TRY(removable(store, "")));
}

Result<Shrunk> shrink_to(Store& store, uint64_t budget, const std::string& keep) {
  Shrunk out;
  uint64_t before = TRY(bytes_in_store(store)), now = before;
  auto candidates = TRY(removable(store, keep));
  for (const Image& image : candidates) {
    if (now <= budget) break;
    for (const std::string& name : names_of(store.index(), image.id)) {
      auto removed = store.remove(name, Store::InUse::refuse);
      // A sandbox has taken it since: it stays.
      if (!removed && removed.error().code == Code::wrong_state) break;
      if (!removed) return std::unexpected(std::move(removed.error()));
      out.names.push_back(name);
    }
    now = TRY(bytes_in_store(store));
  }
  out.bytes = before - std::min(before, now);
  return out;
}

}  // namespace osb::image
