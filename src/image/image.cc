#include "image/image.h"

#include <boost/json.hpp>

#include "image/digest.h"
#include "json/decode.h"

namespace osb::image {
namespace {

namespace bj = json::bj;

constexpr size_t kMaxLayers = 250;  // the launcher takes 256, and some are ours
constexpr size_t kMaxEnv = 4096;

bj::value config_json(const ImageConfig& config) {
  bj::array env, entrypoint, cmd;
  for (const auto& [name, value] : config.env) env.push_back(bj::array{name, value});
  for (const std::string& word : config.entrypoint) entrypoint.emplace_back(word);
  for (const std::string& word : config.cmd) cmd.emplace_back(word);
  bj::object labels;
  for (const auto& [name, value] : config.labels) labels[name] = value;
  bj::object out{{"env", std::move(env)},
                 {"user", config.user},
                 {"workdir", config.workdir},
                 {"entrypoint", std::move(entrypoint)},
                 {"cmd", std::move(cmd)},
                 {"labels", std::move(labels)},
                 {"uid", config.uid},
                 {"gid", config.gid},
                 {"user_name", config.user_name},
                 {"home", config.home}};
  // Only where there are any: the id covers this text, and ids of images without ports are older than ports.
  if (!config.ports.empty()) {
    bj::array ports;
    for (const std::string& port : config.ports) ports.emplace_back(port);
    out["ports"] = std::move(ports);
  }
  return out;
}

bj::array layers_json(const Image& image) {
  bj::array layers;
  for (const std::string& layer : image.layers) layers.emplace_back(layer);
  return layers;
}

// What only images of sandboxes have.
void add_sandbox_parts(bj::object& out, const Image& image) {
  if (!image.owner.empty()) out["owner"] = image.owner;
  if (!image.base.empty()) out["base"] = image.base;
  bj::array over;
  for (const SandboxLayer& layer : image.over) over.push_back(bj::array{layer.overlay, layer.digest});
  if (!over.empty()) out["over"] = std::move(over);
}

Result<void> read_sandbox_parts(const json::Field& field, Image& image) {
  image.owner = field["owner"].string().value_or("");
  image.base = field["base"].string().value_or("");
  for (const json::Field& pair : field["over"].array().value_or(std::vector<json::Field>())) {
    auto words = pair.string_list().value_or(std::vector<std::string>());
    if (words.size() != 2 || !is_overlay_name(words[0]) || !is_hex_digest(words[1]))
      return fail(Code::corrupt, "image.over: no layer");
    image.over.push_back({std::move(words[0]), std::move(words[1])});
  }
  if (image.over.size() > kMaxLayers) return fail(Code::corrupt, "image.over: too many layers");
  return {};
}

uint32_t id_of(const json::Field& field) {
  int64_t value = field.integer().value_or(0);
  if (value < 0 || value > UINT32_MAX) field.complain("value_error", "is no id");
  return static_cast<uint32_t>(value);
}

Result<void> first_issue(const json::Issues& issues) {
  if (issues.empty()) return {};
  const json::Issue& issue = issues.list().front();
  return fail(Code::corrupt, json::to_string(issue.path) + ": " + issue.message);
}

bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }

}  // namespace

bool is_overlay_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.find_first_of("/.\n ") == name.npos;
}

Result<std::pair<std::string, std::string>> parse_env(std::string_view text) {
  size_t equals = text.find('=');
  if (equals == text.npos || equals == 0)
    return fail(Code::invalid_argument, "a variable is written NAME=value");
  if (has_nul(text)) return fail(Code::invalid_argument, "a variable must not contain NUL");
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

Result<ImageConfig> decode_oci_config(const bj::value& value) {
  json::Issues issues;
  auto field = json::Field::root(value, issues, "config");
  ImageConfig config;
  for (const std::string& text : field["Env"].string_list().value_or(std::vector<std::string>())) {
    auto variable = parse_env(text);
    if (!variable) continue;  // other runtimes drop such ones, too
    std::erase_if(config.env, [&](const auto& earlier) { return earlier.first == variable->first; });
    config.env.push_back(std::move(*variable));
  }
  if (config.env.size() > kMaxEnv) return fail(Code::too_large, "config.Env: too many variables");
  config.user = field["User"].string().value_or("");
  config.workdir = field["WorkingDir"].string().value_or("");
  config.entrypoint = field["Entrypoint"].string_list().value_or(std::vector<std::string>());
  config.cmd = field["Cmd"].string_list().value_or(std::vector<std::string>());
  config.labels = field["Labels"].string_map().value_or(std::map<std::string, std::string>());
  for (const auto& [port, nothing] :
       field["ExposedPorts"].object().value_or(std::map<std::string, json::Field>()))
    config.ports.push_back(port);
  TRY(first_issue(issues));
  if (!config.workdir.empty() && config.workdir[0] != '/') config.workdir.insert(0, "/");
  if (has_nul(config.workdir) || has_nul(config.user)) return fail(Code::corrupt, "config: NUL in a name");
  return config;
}

bj::value to_json(const Image& image) {
  bj::object out{{"id", image.id},
                 {"layers", layers_json(image)},
                 {"config", config_json(image.config)},
                 {"imported", format_api_time(image.imported)},
                 {"bytes", image.bytes},
                 {"entries", image.entries}};
  if (!image.manifest.empty()) out["manifest"] = image.manifest;
  add_sandbox_parts(out, image);
  return out;
}

Result<Image> image_from_json(const bj::value& value) {
  json::Issues issues;
  auto field = json::Field::root(value, issues, "image");
  Image image;
  image.id = field["id"].required_string();
  image.layers = field["layers"].string_list().value_or(std::vector<std::string>());
  image.imported = parse_time(field["imported"].string().value_or("")).value_or(WallTime{});
  image.bytes = static_cast<uint64_t>(field["bytes"].integer().value_or(0));
  image.entries = static_cast<uint64_t>(field["entries"].integer().value_or(0));
  image.manifest = field["manifest"].string().value_or("");
  auto in = field["config"];
  ImageConfig& config = image.config;
  for (const json::Field& pair : in["env"].array().value_or(std::vector<json::Field>())) {
    auto words = pair.string_list().value_or(std::vector<std::string>());
    if (words.size() == 2) config.env.emplace_back(std::move(words[0]), std::move(words[1]));
  }
  config.user = in["user"].string().value_or("");
  config.workdir = in["workdir"].string().value_or("");
  config.entrypoint = in["entrypoint"].string_list().value_or(std::vector<std::string>());
  config.cmd = in["cmd"].string_list().value_or(std::vector<std::string>());
  config.labels = in["labels"].string_map().value_or(std::map<std::string, std::string>());
  config.ports = in["ports"].string_list().value_or(std::vector<std::string>());
  config.uid = id_of(in["uid"]);
  config.gid = id_of(in["gid"]);
  config.user_name = in["user_name"].string().value_or("");
  config.home = in["home"].string().value_or("");
  TRY(first_issue(issues));
  if (!image.manifest.empty() && !is_hex_digest(image.manifest))
    return fail(Code::corrupt, "image.manifest: no digest");
  if (!is_hex_digest(image.id)) return fail(Code::corrupt, "image.id: no digest");
  TRY(read_sandbox_parts(field, image));
  if ((image.layers.empty() && image.base.empty()) || image.layers.size() > kMaxLayers) {
    return fail(Code::corrupt, "image.layers: must be 1 to " + std::to_string(kMaxLayers));
  }
  for (const std::string& layer : image.layers) {
    if (!is_hex_digest(layer)) return fail(Code::corrupt, "image.layers: no digest");
  }
  return image;
}

std::string compute_id(const Image& image) {
  bj::object text{{"layers", layers_json(image)}, {"config", config_json(image.config)}};
  add_sandbox_parts(text, image);
  return sha256(json::print(text));
}

}  // namespace osb::image
