#include "server/record.h"

#include "base/ids.h"
#include "json/decode.h"
#include "runtime/runtime.h"

namespace osb::server {
namespace {

namespace bj = boost::json;

// The parts that are JSON texts themselves, the least important first.
struct Part {
  const char* name;
  std::string store::Sandbox::* text;
  const char* empty;
};
constexpr Part kParts[] = {{"entrypoint", &store::Sandbox::entrypoint, "[]"},
                           {"envNames", &store::Sandbox::env_names, "[]"},
                           {"extensions", &store::Sandbox::extensions, "{}"},
                           {"metadata", &store::Sandbox::metadata, "{}"},
                           {"limits", &store::Sandbox::limits, "{}"}};

int64_t micros(WallTime time) { return time.time_since_epoch().count(); }
WallTime from_micros(int64_t value) { return WallTime(std::chrono::microseconds(value)); }

// Printed into answers as it stands: it has to be what it is taken for.
bool is_part(const std::string& text, const Part& part) {
  auto value = json::parse(text);
  if (!value) return false;
  return part.empty[0] == '{' ? value->is_object() : value->is_array();
}

}  // namespace

std::string to_record(const store::Sandbox& row) {
  bj::object record{{"version", 1},
                    {"id", row.id},
                    {"handle", row.handle},
                    {"image", row.image},
                    {"platform", row.platform},
                    {"created", micros(row.created)}};
  if (row.expires) record["expires"] = micros(*row.expires);
  for (const Part& part : kParts) record[part.name] = row.*part.text;
  std::string text = json::print(record);
  for (const Part& part : kParts) {
    if (text.size() <= runtime::kMaxRecord) break;
    record[part.name] = part.empty;
    text = json::print(record);
  }
  return text;
}

Result<store::Sandbox> from_record(std::string_view record) {
  auto value = json::parse(record);
  if (!value) return fail(Code::corrupt, "a sandbox's record: " + value.error().message);
  json::Issues issues;
  auto field = json::Field::root(*value, issues, "record", json::Reading::exact);
  store::Sandbox row;
  if (field["version"].required_integer() != 1) field["version"].complain("value_error", "is unknown");
  row.id = field["id"].required_string();
  row.handle = field["handle"].required_string();
  if (!is_uuid(row.id) || !is_uuid(row.handle)) field["id"].complain("value_error", "is no id");
  row.image = field["image"].required_string();
  row.platform = field["platform"].required_string();
  row.created = from_micros(field["created"].required_integer());
  if (auto expires = field["expires"].integer()) row.expires = from_micros(*expires);
  for (const Part& part : kParts) {
    row.*part.text = field[part.name].required_string();
    if (!is_part(row.*part.text, part)) field[part.name].complain("value_error", "is something else");
  }
  if (!issues.empty()) {
    const json::Issue& issue = issues.list().front();
    return fail(Code::corrupt, "a sandbox's " + json::to_string(issue.path) + ": " + issue.message);
  }
  return row;
}

}  // namespace osb::server
