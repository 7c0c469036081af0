#include "image/push_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/fd.h"
#include "base/machine.h"
#include "base/strings.h"
#include "image/digest.h"
#include "image/index.h"
#include "json/decode.h"

namespace osb::image {
namespace {

namespace bj = json::bj;

constexpr size_t kMaxManifest = 32 * 1024;
constexpr std::string_view kRootOverlay = "root";  // the only one of a sandbox of an image

PushSource source_of(const std::string& state_dir, const Index& index, const Image& image) {
  PushSource source{.layers = {}, .config = image.config, .created = image.imported, .names = {}};
  for (const std::string& layer : image.layers)
    source.layers.push_back(state_dir + "/images/store/layers/" + layer);
  for (const auto& [name, id] : index.names) {
    const Image& other = index.images.at(id);
    bool shares = std::ranges::any_of(other.layers, [&](const std::string& layer) {
      return std::ranges::find(image.layers, layer) != image.layers.end();
    });
    if (shares) source.names.push_back(name);
  }
  return source;
}

bool is_snapshot_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && id.find_first_of("/.\0 \n") == id.npos;
}

// The lines of launcher/snapshot_manifest.h, topmost layer first.
struct SnapshotLines {
  std::string image;
  std::vector<std::string> layers;
};
Result<SnapshotLines> read_lines(std::string_view text) {
  SnapshotLines out;
  for (std::string_view line : split(text, '\n')) {
    auto words = split(line, ' ');
    if (words[0] == "image" && words.size() == 2) out.image = words[1];
    if (words[0] != "layer" || words.size() != 3) continue;
    if (words[1] != kRootOverlay || !is_hex_digest(words[2]))
      return fail(Code::unsupported, "the snapshot has files beside those of an image");
    out.layers.emplace_back(words[2]);
  }
  return out;
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
  const Image* image = index.find(name);
  if (auto by_id = index.images.find(name); !image && by_id != index.images.end()) image = &by_id->second;
  if (!image) return fail(Code::not_found, "there is no such image on this host\n  remedy: osb images ls");
  return source_of(state_dir, index, *image);
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
  SnapshotLines lines = TRY(read_lines(*text));
  if (lines.image.empty())
    return fail(Code::unsupported,
                "the snapshot is of a sandbox that has the host's own files, which are no image");
  PushSource source = TRY(find_image_to_push(state_dir, lines.image));
  source.created = WallTime(std::chrono::seconds(info.st_mtime));
  for (auto layer = lines.layers.rbegin(); layer != lines.layers.rend(); ++layer)
    source.layers.push_back(state_dir + "/images/snapshots/layers/" + *layer);
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
