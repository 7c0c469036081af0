#include "image/manifest.h"

#include <boost/json.hpp>

#include "base/machine.h"
#include "image/digest.h"

namespace osb::image {
namespace {

using json::Field;

constexpr size_t kMaxChoices = 256;

Result<boost::json::value> parse_document(std::string_view text) {
  if (text.size() > kMaxDocument) return fail(Code::too_large, "a document of more than 4 MiB");
  auto value = json::parse(text);
  if (!value) return fail(Code::corrupt, "not valid JSON: " + value.error().message);
  return value;
}

Result<Manifest> read_manifest(const Field& field, const json::Issues& issues) {
  Manifest out;
  out.config = TRY(parse_descriptor(field["config"]));
  for (const Field& item : field["layers"].array().value_or(std::vector<Field>())) {
    Descriptor layer = TRY(parse_descriptor(item));
    if (layer.type.find("tar") == std::string::npos) {
      return fail(Code::unsupported,
                  "a layer of the kind " + layer.type.substr(0, 100) + ", which is no tar archive");
    }
    out.layers.push_back(std::move(layer));
    if (out.layers.size() > kMaxImageLayers)
      return fail(Code::too_large, "more than " + std::to_string(kMaxImageLayers) + " layers");
  }
  TRY(first_issue("manifest", issues));
  return out;
}

}  // namespace

Result<void> first_issue(const std::string& document, const json::Issues& issues) {
  if (issues.empty()) return {};
  const json::Issue& issue = issues.list().front();
  return fail(Code::corrupt, document + ": " + json::to_string(issue.path) + ": " + issue.message);
}

bool is_index(std::string_view media_type) {
  return media_type.find("index") != media_type.npos || media_type.find("manifest.list") != media_type.npos;
}

Result<Descriptor> parse_descriptor(const Field& item) {
  Descriptor out;
  out.type = item["mediaType"].string().value_or("");
  out.digest = TRY(parse_digest(item["digest"].required_string()));
  int64_t size = item["size"].integer().value_or(0);
  if (size < 0) return fail(Code::corrupt, "a size below 0");
  out.size = static_cast<uint64_t>(size);
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

Result<ConfigDocument> parse_config_document(std::string_view text) {
  auto value = TRY(parse_document(text));
  json::Issues issues;
  auto field = Field::root(value, issues, "config");
  std::string os = field["os"].string().value_or("linux"),
              machine = field["architecture"].string().value_or("");
  ConfigDocument out;
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

Result<Manifest> parse_manifest(std::string_view text) {
  auto value = TRY(parse_document(text));
  json::Issues issues;
  return read_manifest(Field::root(value, issues, "manifest"), issues);
}

Result<ManifestOrIndex> parse_manifest_or_index(std::string_view text) {
  auto value = TRY(parse_document(text));
  json::Issues issues;
  auto field = Field::root(value, issues, "manifest");
  ManifestOrIndex out;
  if (!field["manifests"].present()) {
    if (field["fsLayers"].present())
      return fail(Code::unsupported, "a manifest of the first, unsafe kind (schemaVersion 1)");
    out.manifest = TRY(read_manifest(field, issues));
    return out;
  }
  for (const Field& item : field["manifests"].array().value_or(std::vector<Field>())) {
    out.choices.push_back(TRY(parse_descriptor(item)));
    if (out.choices.size() > kMaxChoices) return fail(Code::too_large, "an index of more than 256 manifests");
  }
  TRY(first_issue("index", issues));
  if (out.choices.empty()) return fail(Code::corrupt, "an index without manifests");
  return out;
}

Result<std::vector<Descriptor>> choose(const std::vector<Descriptor>& choices, std::string_view platform) {
  std::vector<Descriptor> fitting, silent;
  std::string others;
  for (const Descriptor& choice : choices) {
    if (choice.machine == platform) fitting.push_back(choice);
    if (choice.machine.empty()) silent.push_back(choice);
    // Attestations and the like are listed as images of an unknown machine.
    if (choice.machine.starts_with("unknown/") || others.size() > 200) continue;
    others += (others.empty() ? "" : ", ") + choice.machine.substr(0, 60);
  }
  fitting.insert(fitting.end(), silent.begin(), silent.end());
  if (!fitting.empty()) return fitting;
  return fail(Code::unsupported, "it is not there for " + std::string(platform) + ", only for " +
                                     (others.empty() ? "nothing that has a name" : others));
}

Result<void> check_same_layers(size_t in_manifest, size_t in_config) {
  if (in_manifest == 0) return fail(Code::corrupt, "an image without layers");
  if (in_manifest > kMaxImageLayers)
    return fail(Code::too_large, "more than " + std::to_string(kMaxImageLayers) + " layers");
  if (in_manifest == in_config) return {};
  return fail(Code::corrupt, "the image's configuration is about " + std::to_string(in_config) +
                                 " layers, its manifest about " + std::to_string(in_manifest));
}

}  // namespace osb::image
