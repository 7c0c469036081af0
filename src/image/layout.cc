#include "image/layout.h"

#include <boost/json.hpp>

#include "image/digest.h"
#include "json/decode.h"

namespace osb::image {
namespace {

namespace bj = json::bj;
using json::Field;

constexpr size_t kMaxLayers = 250;
constexpr size_t kMaxImages = 64;
constexpr int kMaxNesting = 3;
constexpr size_t kMaxJson = 4 << 20;

Result<void> first_issue(const std::string& file, const json::Issues& issues) {
  if (issues.empty()) return {};
  const json::Issue& issue = issues.list().front();
  return fail(Code::corrupt, file + ": " + json::to_string(issue.path) + ": " + issue.message);
}

struct ReadConfig {
  ImageConfig config;
  std::vector<std::string> diff_ids;
};

// The configuration file of an image.
Result<ReadConfig> parse_config(const std::string& text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = Field::root(value, issues, "config");
  std::string os = field["os"].string().value_or("linux"),
              machine = field["architecture"].string().value_or("");
  ReadConfig out;
  for (const std::string& digest :
       field["rootfs"]["diff_ids"].string_list().value_or(std::vector<std::string>())) {
    out.diff_ids.push_back(TRY(parse_digest(digest)));
  }
  TRY(first_issue("image configuration", issues));
  if ((os != "linux" && !os.empty()) || (!machine.empty() && machine != host_architecture())) {
    return fail(Code::unsupported, "the image is for " + os.substr(0, 40) + "/" + machine.substr(0, 40) +
                                       ", this machine is linux/" + std::string(host_architecture()));
  }
  if (auto config = field["config"]; config.present()) out.config = TRY(decode_oci_config(*config.raw()));
  return out;
}

Result<std::vector<LayerSource>> pair_up(std::vector<LayerSource> layers,
                                         const std::vector<std::string>& diff_ids) {
  if (layers.empty()) return fail(Code::corrupt, "an image without layers");
  if (layers.size() > kMaxLayers)
    return fail(Code::too_large, "more than " + std::to_string(kMaxLayers) + " layers");
  if (layers.size() != diff_ids.size()) {
    return fail(Code::corrupt, "the image's configuration is about " + std::to_string(diff_ids.size()) +
                                   " layers, its manifest about " + std::to_string(layers.size()));
  }
  for (size_t i = 0; i < layers.size(); ++i) layers[i].diff_id = diff_ids[i];
  return layers;
}

Result<ArchivedImage> read_docker_image(ArchiveFiles& files, const Field& item) {
  ArchivedImage image;
  image.names = item["RepoTags"].string_list().value_or(std::vector<std::string>());
  auto read = TRY(parse_config(TRY(files.read(item["Config"].required_string(), kMaxJson))));
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

struct Descriptor {
  std::string type, digest, machine;
  std::vector<std::string> names;
};

Result<Descriptor> parse_descriptor(const Field& item) {
  Descriptor out;
  out.type = item["mediaType"].string().value_or("");
  out.digest = TRY(parse_digest(item["digest"].required_string()));
  if (item["platform"].present()) {
    out.machine = item["platform"]["os"].string().value_or("") + "/" +
                  item["platform"]["architecture"].string().value_or("");
  }
  for (const char* key : {"io.containerd.image.name", "org.opencontainers.image.ref.name"}) {
    auto name = item["annotations"][key].string();
    if (name && !name->empty()) {
      out.names.push_back(std::move(*name));
      break;
    }
  }
  return out;
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
      bool nested = descriptor.type.find("index") != std::string::npos ||
                    descriptor.type.find("manifest.list") != std::string::npos;
      TRY(nested ? index(below, descriptor.names, depth + 1) : manifest(below, descriptor.names));
      if (images_.size() > kMaxImages) return fail(Code::too_large, "more than 64 images");
    }
    return {};
  }

  Result<void> manifest(const std::string& text, std::vector<std::string> names) {
    auto value = TRY(json::parse(text));
    json::Issues issues;
    auto field = Field::root(value, issues, "manifest");
    auto config_at = TRY(parse_descriptor(field["config"]));
    std::vector<LayerSource> layers;
    for (const Field& item : field["layers"].array().value_or(std::vector<Field>())) {
      Descriptor layer = TRY(parse_descriptor(item));
      if (layer.type.find("tar") == std::string::npos) {
        return fail(Code::unsupported,
                    "a layer of the kind " + layer.type.substr(0, 100) + ", which is no tar archive");
      }
      layers.push_back({.bytes = TRY(files_.find("blobs/sha256/" + layer.digest)),
                        .diff_id = "",
                        .blob_digest = layer.digest});
    }
    TRY(first_issue("manifest", issues));
    auto read = TRY(parse_config(TRY(blob(config_at.digest))));
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
