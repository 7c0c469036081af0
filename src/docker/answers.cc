#include "docker/answers.h"

#include "base/shown.h"
#include "base/strings.h"
#include "json/decode.h"

namespace osb::docker {
namespace {

constexpr size_t kMaxMessage = 400;

std::string cut(std::string_view text) { return shown(text.substr(0, kMaxMessage)); }

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
  return EngineVersion{*newest, *oldest, std::move(engine)};
}

Result<Container> parse_container(std::string_view text) {
  Read in{.value = TRY(read(text)), .issues = {}};
  auto root = in.root();
  Container out;
  out.id = root["Id"].required_string();
  out.labels = root["Config"]["Labels"].string_map().value_or(std::map<std::string, std::string>());
  auto state = root["State"];
  out.status = state["Status"].required_string();
  out.running = state["Running"].boolean().value_or(false);
  out.paused = state["Paused"].boolean().value_or(false);
  out.out_of_memory = state["OOMKilled"].boolean().value_or(false);
  out.exit_code = static_cast<int>(state["ExitCode"].integer().value_or(0));
  out.error = cut(state["Error"].string().value_or(""));
  if (!in.issues.empty() || out.id.empty()) return odd("container");
  return out;
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

Result<Image> parse_image(std::string_view text) {
  Read in{.value = TRY(read(text)), .issues = {}};
  auto root = in.root();
  Image out;
  out.id = root["Id"].required_string();
  out.platform = root["Os"].string().value_or("linux") + "/" + root["Architecture"].string().value_or("");
  if (!in.issues.empty() || out.id.empty()) return odd("image");
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

std::string parse_error(std::string_view body, int status) {
  std::string message;
  if (auto value = json::parse(body)) {
    json::Issues issues;
    message = json::Field::root(*value, issues, "answer")["message"].string().value_or("");
  }
  return message.empty() ? "status " + std::to_string(status) : cut(message);
}

Result<PullLine> parse_pull_line(std::string_view text) {
  Read in{.value = TRY(read(text)), .issues = {}};
  auto root = in.root();
  PullLine out;
  out.error = cut(root["errorDetail"]["message"].string().value_or(root["error"].string().value_or("")));
  std::string id = root["id"].string().value_or(""), status = root["status"].string().value_or("");
  out.text = cut(id.empty() ? status : id + ": " + status);
  if (!in.issues.empty()) return odd("progress of a pull");
  return out;
}

}  // namespace osb::docker
