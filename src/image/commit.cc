#include "image/commit.h"

#include <sys/stat.h>

#include "base/hex.h"
#include "base/strings.h"
#include "image/accounts.h"
#include "image/layer_import.h"
#include "image/reference.h"
#include "sys/directory.h"

namespace osb::image {
namespace {

constexpr size_t kMaxManifest = 32 * 1024;
constexpr char kSnapshots[] = "/images/snapshots/";

// The tree of ours below `host`: each version has the same accounts, so the newest will do.
Result<std::string> host_root(const std::string& state_dir) {
  std::string newest;
  timespec when{};
  for (const std::string& name : TRY(sys::names_in(state_dir + "/images"))) {
    std::string root = state_dir + "/images/" + name + "/root";
    struct stat info{};
    if (!name.starts_with("host-") || ::lstat(root.c_str(), &info) < 0) continue;
    bool newer = info.st_mtim.tv_sec > when.tv_sec ||
                 (info.st_mtim.tv_sec == when.tv_sec && info.st_mtim.tv_nsec > when.tv_nsec);
    if (!newest.empty() && !newer) continue;
    newest = root;
    when = info.st_mtim;
  }
  if (newest.empty()) return fail(Code::internal, "the image host is not on this host");
  return newest;
}

// The directories that hold the root of an image, lowest first.
Result<std::vector<std::string>> root_layers(const Store& store, const Image& image,
                                             const std::map<std::string, std::string>& directories) {
  std::vector<std::string> paths;
  if (image.base == kHostImage) {
    paths.push_back(TRY(host_root(store.state_dir())));
  } else if (!image.base.empty()) {
    auto found = directories.find(image.base);
    if (found == directories.end()) return fail(Code::not_found, "the image below is not configured here");
    paths.push_back(found->second);
  }
  for (const std::string& digest : image.layers) paths.push_back(store.layer_path(digest));
  for (auto layer = image.over.rbegin(); layer != image.over.rend(); ++layer) {
    if (layer->overlay == "root") paths.push_back(store.sandbox_layer_path(layer->digest));
  }
  return paths;
}

Result<Image> below(const Store& store, const SnapshotParts& parts, const CommitOrder& order) {
  if (parts.image.empty()) {
    Image image;
    image.base = order.base.empty() ? std::string(kHostImage) : order.base;
    return image;
  }
  auto found = store.index().images.find(parts.image);
  if (found == store.index().images.end())
    return fail(Code::not_found, "the image that the snapshot was made over is not on this host any more");
  return found->second;
}

// Those that a snapshot's sandbox lay on are in its manifest, also those of an image that is one of these.
Result<void> add_sizes(const Store& store, const Image& before, Image& image) {
  for (const SandboxLayer& layer : image.over) {
    if (std::ranges::find(before.over, layer) != before.over.end()) continue;
    auto known = TRY(layer_at(store.sandbox_layer_path(layer.digest), layer.digest));
    image.bytes += known.bytes;
    image.entries += known.entries;
  }
  return {};
}

}  // namespace

bool is_snapshot_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 &&
         id.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz-") == id.npos && id[0] != '-';
}

Result<SnapshotParts> parse_snapshot(std::string_view manifest) {
  SnapshotParts parts;
  for (std::string_view line : split(manifest, '\n')) {
    auto words = split(line, ' ');
    if (words[0] == "image" && words.size() == 2 && is_hex_digest(words[1])) {
      parts.image = words[1];
    } else if (words[0] == "layer" && words.size() == 3 && is_overlay_name(words[1]) &&
               is_hex_digest(words[2])) {
      parts.layers.push_back({std::string(words[1]), std::string(words[2])});
    } else if (words[0] != "" && words[0] != "boot" && words[0] != "size") {
      return fail(Code::corrupt, "a line of a snapshot makes no sense");
    }
  }
  return parts;
}

Result<void> check_taken(const Index& index, const std::string& name, const std::string& owner) {
  TRY(check_name(name));
  if (name.find('@') != name.npos)
    return fail(Code::invalid_argument, "a name with a digest is given by registries only");
  if (name.starts_with("opensandbox-snapshots:"))
    return fail(Code::invalid_argument, "names that begin with opensandbox-snapshots: belong to snapshots");
  const Image* holder = index.find(name);
  if (!holder || (!holder->owner.empty() && holder->owner == owner)) return {};
  return fail(Code::already_exists, "another image has this name, and it was not made of a sandbox of yours");
}

Result<std::string> commit(Store& store, const CommitOrder& order,
                           const std::map<std::string, std::string>& directories) {
  TRY(check_taken(store.index(), order.name, order.owner));
  if (directories.contains(order.name))
    return fail(Code::already_exists, "the name belongs to a directory in the configuration");
  if (!is_snapshot_id(order.snapshot)) return fail(Code::invalid_argument, "this is no id of a snapshot");
  if (order.owner.empty()) return fail(Code::invalid_argument, "an image of a sandbox has an owner");
  auto text =
      read_file(store.state_dir() + kSnapshots + "kept/" + order.snapshot + "/manifest", kMaxManifest);
  if (!text && text.error().code == Code::not_found)
    return fail(Code::not_found, "there is no such snapshot");
  if (!text) return std::unexpected(std::move(text.error()));
  SnapshotParts parts = TRY(parse_snapshot(*text));
  Image before = TRY(below(store, parts, order));
  Image image = before;
  image.manifest.clear();
  image.owner = order.owner;
  image.over = std::move(parts.layers);
  TRY(add_sizes(store, before, image));
  apply(order.changes, image.config);
  auto paths = TRY(root_layers(store, image, directories));
  auto passwd = TRY(read_from_layers(paths, "etc/passwd")), group = TRY(read_from_layers(paths, "etc/group"));
  TRY(resolve_user(image.config, passwd, group));
  image.imported = wall_now();
  image.id = compute_id(image);
  std::string id = image.id;
  TRY(store.add(std::move(image), {order.name}));
  TRY(store.collect());  // what had the name before
  return id;
}

}  // namespace osb::image
