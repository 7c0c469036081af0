#include "docker/answers.h"

#include <algorithm>

#include "base/strings.h"
#include "json/decode.h"

namespace osb::docker {
namespace {

constexpr size_t kMaxMessage = 400;

// One line; an engine's reasons are longer than what shown() lets through.
std::string cut(std::string_view text) {
  std::string out(text.substr(0, kMaxMessage));
  std::ranges::replace_if(out, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return out;
}

std::unexpected<Error> odd(std::string_view what) {
  return fail(Code::corrupt, "an odd answer of the engine: " + std::string(what));
}

struct Read {
  json::bj::value value;
  json::Issues issues;
  json::Field root() { return json::Field::root(value, issues, "answer", json::Reading::lenient); }
};

// The engine writes these; nobody is told where in them a mistake is.
Result<json::bj::value> read(std::string_view text) {
  auto value = json::parse(text);
  if (!value || !value->is_object()) return odd("no JSON object");
  return std::move(*value);
}

const json::bj::object* object_in(const json::bj::object* from, std::string_view name) {
  const json::bj::value* value = from ? from->if_contains(name) : nullptr;
  return value ? value->if_object() : nullptr;
}

std::string text_in(const json::bj::object* from, std::string_view name) {
  const json::bj::value* value = from ? from->if_contains(name) : nullptr;
  const json::bj::string* text = value ? value->if_string() : nullptr;
  return text ? std::string(*text) : std::string();
}

// Nothing for what is no size.
uint64_t bytes_in(const json::bj::object* from, std::string_view name) {
  constexpr int64_t kMost = int64_t{1} << 50;
  const json::bj::value* value = from ? from->if_contains(name) : nullptr;
  const int64_t* number = value ? value->if_int64() : nullptr;
  return number && *number > 0 && *number <= kMost ? static_cast<uint64_t>(*number) : 0;
}

// "44772/tcp": [{"HostIp": "127.0.0.1", "HostPort": "32768"}]; the first that is IPv4.
void read_published(std::string_view name, const json::bj::value& places, Container& out) {
  auto port = name.ends_with("/tcp") ? parse_number<uint16_t>(name.substr(0, name.size() - 4)) : std::nullopt;
  if (!port || !places.is_array()) return;
  for (const json::bj::value& place : places.get_array()) {
    std::string host = text_in(place.if_object(), "HostIp");
    auto there = parse_number<uint16_t>(text_in(place.if_object(), "HostPort"));
    if (!there || *there == 0 || host.contains(':')) continue;
    out.published.emplace(*port, (host.empty() ? "0.0.0.0" : host) + ":" + std::to_string(*there));
  }
}

void read_network(const json::bj::value& value, Container& out) {
  const auto* settings = object_in(value.if_object(), "NetworkSettings");
  if (const auto* networks = object_in(settings, "Networks")) {
    for (const auto& network : *networks) {
      std::string address = text_in(network.value().if_object(), "IPAddress");
      if (!address.empty()) out.addresses.emplace(network.key(), std::move(address));
    }
  }
  if (const auto* ports = object_in(settings, "Ports")) {
    for (const auto& port : *ports) read_published(port.key(), port.value(), out);
  }
}

// Podman has the names of its images in full.
std::vector<std::string> tags_of(const json::Field& field) {
  constexpr std::string_view kLibrary = "docker.io/library/";
  auto out = field.string_list().value_or(std::vector<std::string>());
  std::erase(out, "<none>:<none>");
  for (std::string& tag : out)
    if (tag.starts_with(kLibrary)) tag.erase(0, kLibrary.size());
  return out;
}

// "No space left" is not about the disk that its reader looks at first. A control group that cannot be made
// is told in the same words.
std::string with_whose_disk(std::string message) {
  bool is_full = message.contains("no space left on device") || message.contains("disk quota exceeded");
  return is_full && !message.contains("cgroup") ? "the Docker engine's own disk is full: " + message
                                                : message;
}

}  // namespace

std::optional<ApiVersion> parse_api_version(std::string_view text) {
  size_t dot = text.find('.');
  if (dot == text.npos) return std::nullopt;
  auto major = parse_number<uint16_t>(text.substr(0, dot));
  auto minor = parse_number<uint16_t>(text.substr(dot + 1));
  if (!major || !minor) return std::nullopt;
  return ApiVersion{*major, *minor};
}

std::string to_string(ApiVersion version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

Result<EngineVersion> parse_version(std::string_view text) {
  Read in{.value = TRY(read(text)), .issues = {}};
  auto root = in.root();
  auto newest = parse_api_version(root["ApiVersion"].required_string());
  auto oldest = parse_api_version(root["MinAPIVersion"].string().value_or("1.12"));
  std::string engine = cut(root["Version"].string().value_or("unknown"));
  if (!in.issues.empty() || !newest || !oldest) return odd("version");
  EngineVersion out{*newest, *oldest, std::move(engine)};
  out.machine = cut(root["Arch"].string().value_or(""));
  const auto* parts = in.value.as_object().if_contains("Components");
  if (!parts || !parts->is_array()) return out;
  for (const auto& part : parts->as_array()) {
    const auto* name = part.is_object() ? part.as_object().if_contains("Name") : nullptr;
    out.podman |= name && name->is_string() && name->as_string() == "Podman Engine";
  }
  return out;
}

Result<std::vector<std::string>> parse_runtimes(std::string_view text) {
  auto value = TRY(read(text));
  const auto* root = value.if_object();
  const auto* runtimes = root ? root->if_contains("Runtimes") : nullptr;
  if (!runtimes || !runtimes->is_object()) return odd("list of runtimes");
  std::vector<std::string> out;
  for (const auto& member : runtimes->as_object()) out.emplace_back(member.key());
  return out;
}

std::optional<int64_t> parse_processors(std::string_view text) {
  auto value = read(text);
  const json::bj::value* count = value ? value->get_object().if_contains("NCPU") : nullptr;
  const int64_t* number = count ? count->if_int64() : nullptr;
  return number && *number > 0 ? std::optional(*number) : std::nullopt;
}

std::string parse_engine_id(std::string_view text) {
  constexpr size_t kMost = 128;
  Read in{.value = read(text).value_or(json::bj::value(json::bj::object())), .issues = {}};
  std::string id = in.root()["ID"].string().value_or("");
  bool plain = std::ranges::all_of(id, [](char c) { return c > ' ' && c < 0x7f; });
  return plain && id.size() <= kMost ? id : "";
}

Result<Container> parse_container(std::string_view text) {
  Read in{.value = TRY(read(text)), .issues = {}};
  auto root = in.root();
  Container out;
  out.id = root["Id"].required_string();
  out.image = root["Image"].string().value_or("");
  out.name = root["Name"].string().value_or("");
  if (out.name.starts_with('/')) out.name.erase(0, 1);
  out.labels = root["Config"]["Labels"].string_map().value_or(std::map<std::string, std::string>());
  auto state = root["State"];
  out.status = state["Status"].required_string();
  out.running = state["Running"].boolean().value_or(false);
  out.paused = state["Paused"].boolean().value_or(false);
  out.out_of_memory = state["OOMKilled"].boolean().value_or(false);
  out.exit_code = static_cast<int>(state["ExitCode"].integer().value_or(0));
  std::string finished = state["FinishedAt"].string().value_or("");
  out.finished = !finished.empty() && !finished.starts_with("0001-01-01T");
  out.pid = state["Pid"].integer().value_or(0);
  out.error = cut(state["Error"].string().value_or(""));
  out.reference = root["Config"]["Image"].string().value_or("");
  out.command = root["Config"]["Cmd"].string_list().value_or(std::vector<std::string>());
  out.env = root["Config"]["Env"].string_list().value_or(std::vector<std::string>());
  out.user = root["Config"]["User"].string().value_or("");
  out.created = root["Created"].string().value_or("");
  out.network_mode = root["HostConfig"]["NetworkMode"].string().value_or("");
  read_network(in.value, out);
  if (!in.issues.empty() || out.id.empty()) return odd("container");
  return out;
}

std::string shared_network(const Container& container) {
  constexpr std::string_view kShared = "container:";
  return container.network_mode.starts_with(kShared) ? container.network_mode.substr(kShared.size()) : "";
}

std::optional<std::string> address_on(const Container& container, const std::string& network) {
  auto found = container.addresses.find(network);
  if (found == container.addresses.end()) found = container.addresses.begin();
  if (found == container.addresses.end()) return std::nullopt;
  return found->second;
}

Result<std::vector<std::map<std::string, std::string>>> parse_labels_of_list(std::string_view text) {
  auto value = json::parse(text);
  if (!value || !value->is_array()) return odd("no list");
  std::vector<std::map<std::string, std::string>> out;
  json::Issues issues;
  auto list = json::Field::root(*value, issues, "answer").array().value_or(std::vector<json::Field>());
  for (const json::Field& one : list) {
    if (auto labels = one["Labels"].string_map()) out.push_back(std::move(*labels));
  }
  return out;
}

Result<std::vector<Listed>> parse_container_list(std::string_view text) {
  auto value = json::parse(text);
  if (!value || !value->is_array()) return odd("no list");
  std::vector<Listed> out;
  json::Issues issues;
  auto list = json::Field::root(*value, issues, "answer").array().value_or(std::vector<json::Field>());
  for (const json::Field& one : list) {
    std::string id = one["Id"].string().value_or("");
    auto labels = one["Labels"].string_map();
    if (!id.empty() && labels)
      out.push_back({std::move(id), std::move(*labels), cut(one["State"].string().value_or(""))});
  }
  return out;
}

Result<Image> parse_image(std::string_view text) {
  Read in{.value = TRY(read(text)), .issues = {}};
  auto root = in.root();
  Image out;
  out.id = root["Id"].required_string();
  out.platform = root["Os"].string().value_or("linux") + "/" + root["Architecture"].string().value_or("");
  out.parent = root["Parent"].string().value_or("");
  out.tags = tags_of(root["RepoTags"]);
  out.labels = root["Config"]["Labels"].string_map().value_or(std::map<std::string, std::string>());
  out.env = root["Config"]["Env"].string_list().value_or(std::vector<std::string>());
  out.stop_signal = root["Config"]["StopSignal"].string().value_or("");
  out.bytes = static_cast<uint64_t>(std::max<int64_t>(0, root["Size"].integer().value_or(0)));
  if (!in.issues.empty() || out.id.empty()) return odd("image");
  return out;
}

Result<std::vector<Image>> parse_image_list(std::string_view text) {
  auto value = json::parse(text);
  if (!value || !value->is_array()) return odd("no list");
  json::Issues issues;
  std::vector<Image> out;
  auto list = json::Field::root(*value, issues, "answer").array().value_or(std::vector<json::Field>());
  for (const json::Field& one : list) {
    Image image;
    image.id = one["Id"].string().value_or("");
    image.tags = tags_of(one["RepoTags"]);
    image.labels = one["Labels"].string_map().value_or(std::map<std::string, std::string>());
    if (!image.id.empty()) out.push_back(std::move(image));
  }
  return out;
}

namespace {

std::optional<Volume> volume_in(const json::Field& field) {
  Volume out;
  out.name = field["Name"].string().value_or("");
  out.driver = field["Driver"].string().value_or("");
  out.created = field["CreatedAt"].string().value_or("");
  out.labels = field["Labels"].string_map().value_or(std::map<std::string, std::string>());
  out.mountpoint = field["Mountpoint"].string().value_or("");
  auto options = field["Options"].string_map().value_or(std::map<std::string, std::string>());
  out.mounted_on_use = options.contains("device") || options.contains("type");
  return out.name.empty() ? std::nullopt : std::optional(std::move(out));
}

}  // namespace

Result<Volume> parse_volume(std::string_view text) {
  Read in{.value = TRY(read(text)), .issues = {}};
  auto volume = volume_in(in.root());
  if (!in.issues.empty() || !volume) return odd("volume");
  return std::move(*volume);
}

bool has_label(const std::map<std::string, std::string>& labels, std::string_view filter) {
  size_t equals = filter.find('=');
  auto found = labels.find(std::string(filter.substr(0, equals)));
  return found != labels.end() && (equals == filter.npos || found->second == filter.substr(equals + 1));
}

Result<std::vector<Volume>> parse_volume_list(std::string_view text) {
  Read in{.value = TRY(read(text)), .issues = {}};
  std::vector<Volume> out;
  auto list = in.root()["Volumes"].array().value_or(std::vector<json::Field>());
  for (const json::Field& one : list) {
    if (auto volume = volume_in(one)) out.push_back(std::move(*volume));
  }
  return out;
}

Result<std::vector<sandbox::FileChange>> parse_changes(std::string_view text) {
  using Kind = sandbox::FileChange::Kind;
  auto value = json::parse(text);
  if (!value || !(value->is_array() || value->is_null())) return odd("no list");
  json::Issues issues;
  std::vector<sandbox::FileChange> out;
  auto list = json::Field::root(*value, issues, "answer").array().value_or(std::vector<json::Field>());
  for (const json::Field& one : list) {
    std::string path = one["Path"].required_string();
    int64_t kind = one["Kind"].required_integer();
    if (!issues.empty() || !path.starts_with('/') || kind < 0 || kind > 2) return odd("change");
    out.push_back({kind == 0 ? Kind::modified : kind == 1 ? Kind::added : Kind::deleted, std::move(path)});
  }
  return out;
}

Result<std::string> parse_logs(std::string_view bytes) {
  constexpr size_t kHead = 8;
  std::string out;
  while (!bytes.empty()) {
    if (bytes.size() < kHead || static_cast<unsigned char>(bytes[0]) > 2) return odd("output of a container");
    size_t size = 0;
    for (size_t i = 4; i < kHead; ++i) size = size << 8 | static_cast<unsigned char>(bytes[i]);
    bytes.remove_prefix(kHead);
    if (size > bytes.size()) return odd("output of a container");
    out.append(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return out;
}

Result<std::string> parse_created(std::string_view text) {
  Read in{.value = TRY(read(text)), .issues = {}};
  std::string id = in.root()["Id"].required_string();
  if (!in.issues.empty() || id.empty()) return odd("created container");
  return id;
}

Result<int> parse_wait(std::string_view text) {
  Read in{.value = TRY(read(text)), .issues = {}};
  auto code = in.root()["StatusCode"].required_integer();
  if (!in.issues.empty()) return odd("end of a container");
  return static_cast<int>(code);
}

Result<EngineEvent> parse_event(std::string_view text) {
  using Kind = EngineEvent::Kind;
  constexpr std::pair<std::string_view, Kind> kWords[] = {{"pause", Kind::paused},
                                                          {"unpause", Kind::unpaused},
                                                          {"die", Kind::died},
                                                          {"destroy", Kind::destroyed}};
  Read in{.value = TRY(read(text)), .issues = {}};
  auto root = in.root();
  EngineEvent out;
  std::string action = root["Action"].string().value_or("");
  for (const auto& [word, kind] : kWords) {
    if (action == word && root["Type"].string().value_or("container") == "container") out.kind = kind;
  }
  out.container = root["Actor"]["ID"].string().value_or("");
  out.labels = root["Actor"]["Attributes"].string_map().value_or(std::map<std::string, std::string>());
  if (!in.issues.empty() || (out.kind != Kind::other && out.container.empty())) return odd("event");
  return out;
}

std::string parse_error(std::string_view body, int status) {
  std::string message;
  if (auto value = json::parse(body)) {
    json::Issues issues;
    message = json::Field::root(*value, issues, "answer")["message"].string().value_or("");
  }
  return message.empty() ? "status " + std::to_string(status) : with_whose_disk(cut(message));
}

bool says_no_image(std::string_view message) {
  // Docker's, Podman's, and Docker's for one that is there for another platform.
  static constexpr std::string_view kWords[] = {"no such image", "image not known", "image with reference"};
  std::string lower = to_lower(message);
  return std::ranges::any_of(kWords, [&](std::string_view words) { return lower.contains(words); });
}

Result<PullLine> parse_pull_line(std::string_view text) {
  Read in{.value = TRY(read(text)), .issues = {}};
  auto root = in.root();
  PullLine out;
  out.error = with_whose_disk(
      cut(root["errorDetail"]["message"].string().value_or(root["error"].string().value_or(""))));
  out.id = cut(root["id"].string().value_or(""));
  out.status = cut(root["status"].string().value_or(""));
  out.text = cut(out.id.empty() ? out.status : out.id + ": " + out.status);
  const auto* detail = object_in(in.value.if_object(), "progressDetail");
  out.current = bytes_in(detail, "current");
  out.total = bytes_in(detail, "total");
  if (!in.issues.empty()) return odd("progress of a pull");
  return out;
}

}  // namespace osb::docker
