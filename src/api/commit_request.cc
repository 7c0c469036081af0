#include "api/commit_request.h"

#include <algorithm>

#include "api/body.h"
#include "api/error_catalogue.h"
#include "base/strings.h"
#include "json/decode.h"

namespace osb::api {
namespace {

constexpr size_t kMostText = 4096;
constexpr size_t kMostItems = 1024;

bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }

void check_text(const json::Field& field, std::string_view text) {
  if (has_nul(text)) complain_value(field, "must not contain NUL");
  if (text.size() > kMostText) field.complain("string_too_long", "must have at most 4096 characters");
}

std::optional<std::vector<std::string>> words(const json::Field& field) {
  auto list = field.string_list();
  if (list && list->size() > kMostItems) field.complain("too_long", "must have at most 1024 elements");
  if (list && std::ranges::any_of(*list, has_nul)) complain_value(field, "must not contain NUL");
  return list;
}

// "8080" or "8080/tcp".
bool is_port(std::string_view text) {
  size_t slash = text.find('/');
  auto number = parse_number<uint16_t>(text.substr(0, slash));
  if (!number || *number == 0) return false;
  if (slash == text.npos) return true;
  std::string_view protocol = text.substr(slash + 1);
  return protocol == "tcp" || protocol == "udp" || protocol == "sctp";
}

void read_maps(const json::Field& config, CommitBody& out) {
  json::Field env = config["env"];
  for (const auto& [name, value] : env.string_map().value_or(std::map<std::string, std::string>())) {
    if (name.empty() || name.find('=') != name.npos || has_nul(name) || has_nul(value))
      complain_value(env, "has a name or value that no variable can have");
    out.env.emplace_back(name, value);
  }
  json::Field labels = config["labels"];
  out.labels = labels.string_map().value_or(std::map<std::string, std::string>());
  if (out.env.size() > kMostItems) env.complain("too_long", "must have at most 1024 members");
  if (out.labels.size() > kMostItems) labels.complain("too_long", "must have at most 1024 members");
}

void read_config(const json::Field& config, CommitBody& out) {
  read_maps(config, out);
  out.user = config["user"].string();
  if (out.user) check_text(config["user"], *out.user);
  json::Field workdir = config["workingDir"];
  out.workdir = workdir.string();
  if (out.workdir) check_text(workdir, *out.workdir);
  if (out.workdir && !out.workdir->starts_with('/')) complain_value(workdir, "must be an absolute path");
  out.entrypoint = words(config["entrypoint"]);
  out.cmd = words(config["cmd"]);
  json::Field ports = config["exposedPorts"];
  out.ports = words(ports).value_or(std::vector<std::string>());
  for (std::string& port : out.ports) {
    if (!is_port(port)) {
      complain_value(ports, "must have ports like 8080 or 8080/tcp");
      break;
    }
    if (port.find('/') == port.npos) port += "/tcp";
  }
}

}  // namespace

ApiResult<CommitBody> decode_commit(std::string_view content_type, std::string_view body) {
  boost::json::value value = TRY(parse_body(content_type, body));
  json::Issues issues;
  json::Field root = json::Field::root(value, issues, "body");
  if (!value.is_object()) root.complain("model_attributes_type", "must be an object");
  CommitBody out;
  out.sandbox = root["sandboxId"].string().value_or("");
  out.snapshot = root["snapshotId"].string().value_or("");
  if (out.sandbox.empty() == out.snapshot.empty())
    complain_value(root, "must have exactly one of sandboxId and snapshotId");
  out.name = root["name"].required_string();
  check_text(root["name"], out.name);
  if (json::Field config = root["config"]; config.present()) read_config(config, out);
  if (!issues.empty()) return refuse(invalid_request(issues));
  return out;
}

}  // namespace osb::api
