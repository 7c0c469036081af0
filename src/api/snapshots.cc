#include "api/snapshots.h"

#include <fmt/format.h>

#include <limits>

#include "api/body.h"
#include "api/error_catalogue.h"
#include "api/list_query.h"
#include "base/strings.h"
#include "json/escape.h"

namespace osb::api {

ApiResult<std::optional<std::string>> decode_snapshot(std::string_view content_type, std::string_view body) {
  if (trim(body).empty()) return std::nullopt;
  boost::json::value value = TRY(parse_body(content_type, body));
  if (value.is_null()) return std::nullopt;
  json::Issues issues;
  json::Field root = json::Field::root(value, issues, "body");
  if (!value.is_object()) root.complain("model_attributes_type", "must be an object");
  json::Field field = root["name"];
  auto name = field.string();
  if (name && name->empty()) field.complain("string_too_short", "must have at least 1 character");
  if (name && name->size() > 1024) field.complain("string_too_long", "must have at most 1024 characters");
  if (!issues.empty()) return refuse(invalid_request(issues));
  return name;
}

ApiResult<SnapshotQuery> decode_snapshot_query(std::string_view raw_query) {
  SnapshotQuery out;
  if (raw_query.empty()) return out;
  http::Query query(raw_query);
  out.page = TRY(integer_parameter(query, "page", {1, std::numeric_limits<int64_t>::max() / 1000, 1}));
  out.page_size = TRY(integer_parameter(query, "pageSize", {1, 200, 20}));
  out.filter.sandbox_id = query.get("sandboxId");
  out.filter.name = query.get("name");
  if (auto words = query.all("state"); !words.empty()) {
    out.filter.states.emplace();
    for (const std::string& word : words) {
      if (auto state = sandbox::snapshot_state_from(word))
        out.filter.states->push_back(*state);  // an unknown word matches nothing
    }
  }
  return out;
}

void append_snapshot(std::string& out, const sandbox::Snapshot& snapshot) {
  out.append("{\"id\":\"").append(snapshot.id).append("\",\"sandboxId\":");
  json::append_string(out, snapshot.sandbox_id);
  if (snapshot.name) json::append_string(out.append(",\"name\":"), *snapshot.name);
  out.append(",\"status\":{\"state\":\"").append(to_string(snapshot.status.state)).append("\"");
  if (!snapshot.status.reason.empty())
    json::append_string(out.append(",\"reason\":"), snapshot.status.reason);
  if (!snapshot.status.message.empty())
    json::append_string(out.append(",\"message\":"), snapshot.status.message);
  out.append(",\"lastTransitionAt\":\"").append(format_api_time(snapshot.status.changed)).append("\"}");
  out.append(",\"createdAt\":\"").append(format_api_time(snapshot.created)).append("\"}");
}

std::string changes_json(const std::vector<sandbox::FileChange>& changes) {
  constexpr std::string_view kKinds[] = {"Added", "Modified", "Deleted"};
  std::string out = "{\"changes\":[";
  for (const sandbox::FileChange& change : changes) {
    if (out.back() == '}') out.push_back(',');
    out.append("{\"kind\":\"").append(kKinds[static_cast<int>(change.kind)]).append("\",\"path\":");
    json::append_minimal_string(out, change.path);
    out.push_back('}');
  }
  return out.append("]}");
}

ApiResult<int64_t> decode_fork(std::string_view content_type, std::string_view body) {
  if (trim(body).empty()) return 1;
  boost::json::value value = TRY(parse_body(content_type, body));
  json::Issues issues;
  json::Field root = json::Field::root(value, issues, "body");
  if (!value.is_object()) root.complain("model_attributes_type", "must be an object");
  int64_t count = root["count"].integer().value_or(1);
  if (count < 1) root["count"].complain("greater_than_equal", "must be at least 1");
  if (count > kMostForks)
    root["count"].complain("less_than_equal", fmt::format("must be at most {}", kMostForks));
  if (!issues.empty()) return refuse(invalid_request(issues));
  return count;
}

ApiResult<std::string> decode_rollback(std::string_view content_type, std::string_view body) {
  boost::json::value value = TRY(parse_body(content_type, body));
  json::Issues issues;
  json::Field root = json::Field::root(value, issues, "body");
  if (!value.is_object()) root.complain("model_attributes_type", "must be an object");
  json::Field field = root.any_of({"snapshotId", "snapshot_id"});
  std::string id = field.required_string();
  if (field.present() && trim(id).empty()) field.complain("string_too_short", "must not be blank");
  if (!issues.empty()) return refuse(invalid_request(issues));
  return id;
}

}  // namespace osb::api
