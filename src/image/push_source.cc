#include "image/push_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/fd.h"
#include "base/machine.h"
#include "image/commit.h"
#include "image/digest.h"
#include "image/index.h"
#include "json/decode.h"

namespace osb::image {
namespace {

namespace bj = json::bj;

constexpr size_t kMaxManifest = 32 * 1024;
constexpr std::string_view kRootOverlay = "root";  // the only one of a sandbox of an image

// `over`: layers of sandboxes on top of the image's own, topmost first.
Result<PushSource> source_of(const std::string& state_dir, const Index& index, const Image& image,
                             const std::vector<SandboxLayer>& over) {
  PushSource source{.layers = {}, .config = image.config, .created = image.imported, .names = {}};
  if (!image.base.empty())
    return fail(Code::unsupported,
                "it lies over files of this host (`host`, or a directory), which are no image");
  for (const std::string& layer : image.layers)
    source.layers.push_back(state_dir + "/images/store/layers/" + layer);
  for (auto layer = over.rbegin(); layer != over.rend(); ++layer) {
    if (layer->overlay != kRootOverlay)
      return fail(Code::unsupported, "it has files beside those of an image");
    source.layers.push_back(state_dir + "/images/snapshots/layers/" + layer->digest);
  }
  for (const auto& [name, id] : index.names) {
    const Image& other = index.images.at(id);
    if (!other.owner.empty() && other.owner != image.owner) continue;  // its name is nobody else's business
    bool shares = std::ranges::any_of(other.layers, [&](const std::string& layer) {
      return std::ranges::find(image.layers, layer) != image.layers.end();
    });
    if (shares) source.names.push_back(name);
  }
  return source;
}

Result<const Image*> find_image(const Index& index, const std::string& name) {
  const Image* image = index.find(name);
  if (auto by_id = index.images.find(name); !image && by_id != index.images.end()) image = &by_id->second;
  if (!image) return fail(Code::not_found, "there is no such image on this host\n  remedy: osb images ls");
  return image;
}

bj::array strings(const std::vector<std::string>& list) {
  bj::array out;
  for (const std::string& text : list) out.emplace_back(text);
  return out;
}

bj::object descriptor(std::string_view type, const std::string& digest, uint64_t size) {
  return {{"mediaType", type}, {"digest", "sha256:" + digest}, {"size", size}};
}

}  // namespace

Result<PushSource> find_image_to_push(const std::string& state_dir, const std::string& name) {
  Index index = TRY(load_index(state_dir));
  const Image* image = TRY(find_image(index, name));
  return source_of(state_dir, index, *image, image->over);
}

Result<PushSource> find_snapshot_to_push(const std::string& state_dir, const std::string& snapshot) {
  auto gone = [] { return fail(Code::not_found, "there is no such snapshot\n  remedy: osb snapshots ls"); };
  if (!is_snapshot_id(snapshot)) return gone();
  std::string path = state_dir + "/images/snapshots/kept/" + snapshot + "/manifest";
  auto text = read_file(path, kMaxManifest);
  struct stat info{};
  if (!text && text.error().code == Code::not_found) return gone();
  if (!text) return std::unexpected(std::move(text.error()));
  if (::stat(path.c_str(), &info) < 0) return gone();
  SnapshotParts parts = TRY(parse_snapshot(*text));
  if (parts.image.empty())
    return fail(Code::unsupported,
                "the snapshot is of a sandbox that has the host's own files, which are no image");
  Index index = TRY(load_index(state_dir));
  // What the image itself has of other sandboxes is among the layers of the snapshot.
  PushSource source = TRY(source_of(state_dir, index, *TRY(find_image(index, parts.image)), parts.layers));
  source.created = WallTime(std::chrono::seconds(info.st_mtime));
  return source;
}

std::string config_document(const PushSource& source, const std::vector<PackedForm>& layers) {
  const ImageConfig& config = source.config;
  bj::array env, diff_ids;
  for (const auto& [name, value] : config.env) env.emplace_back(name + "=" + value);
  for (const PackedForm& layer : layers) diff_ids.emplace_back("sha256:" + layer.diff_id);
  bj::object inner;
  if (!env.empty()) inner["Env"] = std::move(env);
  if (!config.user.empty()) inner["User"] = config.user;
  if (!config.workdir.empty()) inner["WorkingDir"] = config.workdir;
  if (!config.entrypoint.empty()) inner["Entrypoint"] = strings(config.entrypoint);
  if (!config.cmd.empty()) inner["Cmd"] = strings(config.cmd);
  if (!config.ports.empty()) {
    bj::object ports;
    for (const std::string& port : config.ports) ports[port] = bj::object();
    inner["ExposedPorts"] = std::move(ports);
  }
  if (!config.labels.empty()) {
    bj::object labels;
    for (const auto& [name, value] : config.labels) labels[name] = value;
    inner["Labels"] = std::move(labels);
  }
  return json::print(
      bj::object{{"created", format_time(source.created, 0)},
                 {"architecture", host_architecture()},
                 {"os", "linux"},
                 {"config", std::move(inner)},
                 {"rootfs", bj::object{{"type", "layers"}, {"diff_ids", std::move(diff_ids)}}}});
}

std::string manifest_document(std::string_view config, const std::vector<PackedForm>& layers) {
  bj::array list;
  for (const PackedForm& layer : layers)
    list.push_back(descriptor(media_type_of(layer.compression), layer.digest, layer.size));
  return json::print(bj::object{
      {"schemaVersion", 2},
      {"mediaType", kManifestType},
      {"config", descriptor("application/vnd.oci.image.config.v1+json", sha256(config), config.size())},
      {"layers", std::move(list)}});
}

}  // namespace osb::image
