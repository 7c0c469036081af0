#include "image/layout.h"

#include <boost/json.hpp>

#include "image/digest.h"
#include "image/manifest.h"

namespace osb::image {
namespace {

using json::Field;

constexpr size_t kMaxImages = 64;
constexpr int kMaxNesting = 3;
constexpr size_t kMaxJson = kMaxDocument;

Result<std::vector<LayerSource>> pair_up(std::vector<LayerSource> layers,
                                         const std::vector<std::string>& diff_ids) {
  TRY(check_same_layers(layers.size(), diff_ids.size()));
  for (size_t i = 0; i < layers.size(); ++i) layers[i].diff_id = diff_ids[i];
  return layers;
}

Result<ArchivedImage> read_docker_image(ArchiveFiles& files, const Field& item) {
  ArchivedImage image;
  image.names = item["RepoTags"].string_list().value_or(std::vector<std::string>());
  auto read = TRY(parse_config_document(TRY(files.read(item["Config"].required_string(), kMaxJson))));
  image.config = std::move(read.config);
  std::vector<LayerSource> layers;
  for (const std::string& name : item["Layers"].string_list().value_or(std::vector<std::string>())) {
    layers.push_back({.bytes = TRY(files.find(name)), .diff_id = "", .blob_digest = ""});
  }
  image.layers = TRY(pair_up(std::move(layers), read.diff_ids));
  return image;
}

Result<std::vector<ArchivedImage>> read_docker(ArchiveFiles& files) {
  auto value = TRY(in_context("manifest.json", json::parse(TRY(files.read("manifest.json", kMaxJson)))));
  json::Issues issues;
  auto items = Field::root(value, issues, "manifest").array().value_or(std::vector<Field>());
  TRY(first_issue("manifest.json", issues));
  if (items.empty() || items.size() > kMaxImages)
    return fail(Code::corrupt, "manifest.json: must list 1 to 64 images");
  std::vector<ArchivedImage> images;
  for (const Field& item : items) {
    images.push_back(TRY(read_docker_image(files, item)));
    TRY(first_issue("manifest.json", issues));
  }
  return images;
}

class Layout {
 public:
  explicit Layout(ArchiveFiles& files) : files_(files) {}

  Result<std::vector<ArchivedImage>> read() {
    TRY(in_context("index.json", index(TRY(files_.read("index.json", kMaxJson)), {}, 0)));
    if (images_.empty()) {
      return fail(Code::unsupported,
                  "no image for linux/" + std::string(host_architecture()) + " is in the archive");
    }
    return std::move(images_);
  }

 private:
  // A small file by its digest, which it must have.
  Result<std::string> blob(const std::string& digest) {
    std::string text = TRY(files_.read("blobs/sha256/" + digest, kMaxJson));
    if (sha256(text) != digest)
      return fail(Code::corrupt, "sha256:" + digest + " is not what its digest promises");
    return text;
  }

  Result<void> index(const std::string& text, std::vector<std::string> names, int depth) {
    if (depth > kMaxNesting) return fail(Code::too_large, "indexes within indexes");
    auto value = TRY(json::parse(text));
    json::Issues issues;
    auto items = Field::root(value, issues, "index")["manifests"].array().value_or(std::vector<Field>());
    for (const Field& item : items) {
      Descriptor descriptor = TRY(parse_descriptor(item));
      TRY(first_issue("index", issues));
      if (descriptor.names.empty()) descriptor.names = names;
      if (!descriptor.machine.empty() && descriptor.machine != "linux/" + std::string(host_architecture()))
        continue;
      std::string below = TRY(blob(descriptor.digest));
      TRY(is_index(descriptor.type) ? index(below, descriptor.names, depth + 1)
                                    : manifest(below, descriptor.names));
      if (images_.size() > kMaxImages) return fail(Code::too_large, "more than 64 images");
    }
    return {};
  }

  Result<void> manifest(const std::string& text, std::vector<std::string> names) {
    Manifest read_manifest = TRY(parse_manifest(text));
    std::vector<LayerSource> layers;
    for (const Descriptor& layer : read_manifest.layers) {
      layers.push_back({.bytes = TRY(files_.find("blobs/sha256/" + layer.digest)),
                        .diff_id = "",
                        .blob_digest = layer.digest});
    }
    auto read = TRY(parse_config_document(TRY(blob(read_manifest.config.digest))));
    ArchivedImage image{std::move(names), std::move(read.config),
                        TRY(pair_up(std::move(layers), read.diff_ids))};
    images_.push_back(std::move(image));
    return {};
  }

  ArchiveFiles& files_;
  std::vector<ArchivedImage> images_;
};

}  // namespace

Result<std::vector<ArchivedImage>> read_layout(ArchiveFiles& files) {
  if (files.has("manifest.json")) return read_docker(files);
  return Layout(files).read();
}

}  // namespace osb::image
