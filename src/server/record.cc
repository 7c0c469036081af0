#include "server/record.h"

#include "base/ids.h"
#include "json/decode.h"
#include "json/string_lists.h"
#include "runtime/runtime.h"

namespace osb::server {
namespace {

namespace bj = boost::json;

int64_t micros(WallTime time) { return time.time_since_epoch().count(); }
WallTime from_micros(int64_t value) { return WallTime(std::chrono::microseconds(value)); }

// Lists and maps are texts of JSON inside the record, as records always had them. The least important first:
// those go when the record would be too long.
struct Part {
  const char* name;
  std::string empty, text;
};
std::vector<Part> parts_of(const sandbox::Sandbox& row) {
  return {{"entrypoint", "[]", json::list_text(row.entrypoint)},
          {"envNames", "[]", json::list_text(row.env_names)},
          {"extensions", "{}", json::map_text(row.extensions)},
          {"metadata", "{}", json::map_text(row.metadata)},
          {"limits", "{}", json::map_text(row.limits)}};
}

void read_list(const json::Field& field, std::vector<std::string>& into) {
  auto list = json::parse_list(field.required_string());
  if (!list) return field.complain("value_error", "is something else");
  into = std::move(*list);
}

void read_map(const json::Field& field, json::StringMap& into) {
  auto map = json::parse_map(field.required_string());
  if (!map) return field.complain("value_error", "is something else");
  into = std::move(*map);
}

bj::array volumes_json(const std::vector<sandbox::Volume>& volumes) {
  bj::array out;
  for (const sandbox::Volume& one : volumes) {
    bj::object volume{{"host", one.backend == sandbox::Volume::Backend::host},
                      {"source", one.source},
                      {"mountPath", one.mount_path},
                      {"subPath", one.sub_path},
                      {"readOnly", one.read_only},
                      {"create", one.create},
                      {"ephemeral", one.ephemeral}};
    if (one.size_bytes) volume["sizeBytes"] = *one.size_bytes;
    out.push_back(std::move(volume));
  }
  return out;
}

sandbox::Volume read_volume(const json::Field& field) {
  using Backend = sandbox::Volume::Backend;
  return {.backend = field["host"].boolean().value_or(false) ? Backend::host : Backend::claim,
          .source = field["source"].required_string(),
          .mount_path = field["mountPath"].required_string(),
          .sub_path = field["subPath"].required_string(),
          .read_only = field["readOnly"].boolean().value_or(true),
          .create = field["create"].boolean().value_or(false),
          .ephemeral = field["ephemeral"].boolean().value_or(false),
          .size_bytes = field["sizeBytes"].integer()};
}

}  // namespace

std::string to_record(const sandbox::Sandbox& row, const std::optional<Environment>& env,
                      const std::vector<sandbox::Volume>& volumes, const std::optional<std::string>& hooks) {
  bj::object record{{"version", 1},
                    {"id", row.id},
                    {"owner", row.owner},
                    {"handle", row.handle},
                    {"image", row.image},
                    {"platform", row.platform},
                    {"created", micros(row.created)}};
  // One runtime may keep what another one made: the native launcher has the sandboxes of runsc, too.
  if (!row.runtime.empty() && row.runtime != "native") record["runtime"] = row.runtime;
  if (!volumes.empty()) record["volumes"] = volumes_json(volumes);
  if (row.expires) record["expires"] = micros(*row.expires);
  const std::vector<Part> parts = parts_of(row);
  for (const Part& part : parts) record[part.name] = part.text;
  if (env) record["env"] = json::map_text({env->begin(), env->end()});
  if (!hooks || !hooks->empty()) record["hooks"] = hooks ? bj::value(*hooks) : bj::value(nullptr);
  std::string text = json::print(record);
  if (text.size() > runtime::kMaxRecord && record.erase("env") > 0) text = json::print(record);
  if (text.size() > runtime::kMaxRecord && record.contains("hooks")) {
    record["hooks"] = nullptr;
    text = json::print(record);
  }
  for (const Part& part : parts) {
    if (text.size() <= runtime::kMaxRecord) break;
    record[part.name] = part.empty;
    text = json::print(record);
  }
  return text;
}

Result<sandbox::Sandbox> from_record(std::string_view record) {
  auto value = json::parse(record);
  if (!value) return fail(Code::corrupt, "a sandbox's record: " + value.error().message);
  json::Issues issues;
  auto field = json::Field::root(*value, issues, "record", json::Reading::exact);
  sandbox::Sandbox row;
  if (field["version"].required_integer() != 1) field["version"].complain("value_error", "is unknown");
  row.id = field["id"].required_string();
  // Records from before there were owners have none.
  row.owner = field["owner"].string().value_or(std::string(sandbox::kDefaultOwner));
  if (row.owner.empty()) field["owner"].complain("value_error", "is empty");
  row.handle = field["handle"].required_string();
  if (!is_sandbox_id(row.id) || !is_uuid(row.handle)) field["id"].complain("value_error", "is no id");
  row.runtime = field["runtime"].string().value_or("");
  row.image = field["image"].required_string();
  row.platform = field["platform"].required_string();
  row.created = from_micros(field["created"].required_integer());
  if (auto expires = field["expires"].integer()) row.expires = from_micros(*expires);
  read_list(field["entrypoint"], row.entrypoint);
  read_list(field["envNames"], row.env_names);
  read_map(field["extensions"], row.extensions);
  read_map(field["metadata"], row.metadata);
  read_map(field["limits"], row.limits);
  if (!issues.empty()) {
    const json::Issue& issue = issues.list().front();
    return fail(Code::corrupt, "a sandbox's " + json::to_string(issue.path) + ": " + issue.message);
  }
  return row;
}

std::string waiting_record(const sandbox::PoolMember& member) {
  return json::print(bj::object{{"version", 1}, {"pool", member.pool}, {"handle", member.handle}});
}

bool is_waiting_record(std::string_view record) {
  auto value = json::parse(record);
  if (!value) return false;
  json::Issues issues;
  auto field = json::Field::root(*value, issues, "record", json::Reading::exact);
  return field["pool"].string().has_value() && !field["id"].present();
}

Result<std::vector<sandbox::Volume>> volumes_of(std::string_view record) {
  std::vector<sandbox::Volume> volumes;
  if (record.empty()) return volumes;
  auto value = json::parse(record);
  if (!value) return fail(Code::corrupt, "a sandbox's record: " + value.error().message);
  json::Issues issues;
  auto field = json::Field::root(*value, issues, "record", json::Reading::exact)["volumes"];
  if (auto elements = field.array()) {
    for (const json::Field& element : *elements) volumes.push_back(read_volume(element));
  }
  if (!issues.empty()) return fail(Code::corrupt, "the volumes in a sandbox's record make no sense");
  return volumes;
}

std::optional<std::string> hooks_of(std::string_view record) {
  auto value = json::parse(record);
  const bj::value* hooks = value && value->is_object() ? value->get_object().if_contains("hooks") : nullptr;
  if (hooks == nullptr) return std::string();
  if (!hooks->is_string()) return std::nullopt;
  return std::string(hooks->get_string());
}

std::string with_network(std::string record, const std::string& network) {
  auto value = json::parse(record);
  if (!value || !value->is_object()) return record;
  value->as_object()["network"] = network;
  std::string text = json::print(*value);
  if (text.size() <= runtime::kMaxRecord) return text;
  // Better none than that of an earlier snapshot.
  value->as_object().erase("network");
  return json::print(*value);
}

std::optional<std::string> kept_network_of(std::string_view record) {
  auto value = json::parse(record);
  if (!value) return std::nullopt;
  json::Issues issues;
  return json::Field::root(*value, issues, "record")["network"].string();
}

std::optional<Environment> environment_of(std::string_view record) {
  auto value = json::parse(record);
  if (!value) return std::nullopt;
  json::Issues issues;
  auto text = json::Field::root(*value, issues, "record")["env"].string();
  auto map = text ? json::parse_map(*text) : std::nullopt;
  if (!map) return std::nullopt;
  return Environment(map->begin(), map->end());
}

}  // namespace osb::server
