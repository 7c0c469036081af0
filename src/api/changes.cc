#include "api/changes.h"

#include <cmath>

#include "api/body.h"
#include "api/error_catalogue.h"
#include "api/failure_status.h"

namespace osb::api {
namespace {

constexpr int64_t kLatestSeconds = 253'402'300'799;  // the end of the year 9999

// Numbers are Unix seconds, or milliseconds when they are too large for that.
std::optional<WallTime> from_number(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  double seconds = std::abs(value) > 2e10 ? value / 1000 : value;
  if (std::abs(seconds) > static_cast<double>(kLatestSeconds)) return std::nullopt;
  return WallTime(std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6)));
}

std::optional<WallTime> decode_time(const json::Field& field) {
  if (!field.present()) {
    field.complain("missing", "is required");
    return std::nullopt;
  }
  if (field.raw()->is_number()) {
    boost::system::error_code error;
    auto time = from_number(field.raw()->to_number<double>(error));
    if (!time) field.complain("datetime_parsing", "must be a date and time before the year 10000");
    return time;
  }
  auto text = field.string();
  if (!text) return std::nullopt;
  auto time = parse_time(*text);
  if (!time) {
    field.complain("datetime_from_date_parsing",
                   "must be a date and time as in RFC 3339, such as 2026-01-02T03:04:05Z");
    return std::nullopt;
  }
  return *time;
}

}  // namespace

ApiResult<sandbox::MetadataPatch> decode_metadata_patch(std::string_view content_type,
                                                        std::string_view body) {
  boost::json::value value = TRY(parse_body(content_type, body));
  json::Issues issues;
  sandbox::MetadataPatch patch;
  json::Field root = json::Field::root(value, issues, "body");
  if (!root.present()) root.complain("dict_type", "must be an object");
  if (auto members = root.object()) {
    for (auto& [key, member] : *members) patch.emplace(key, member.string());
  }
  if (!issues.empty()) return refuse(invalid_request(issues));
  for (const auto& [key, text] : patch) {
    if (key.starts_with(sandbox::kReservedPrefix)) return refuse(reserved_label(key));
    if (text) TRY(on_wire(sandbox::check_label(key, *text)));
  }
  return patch;
}

ApiResult<WallTime> decode_renewal(std::string_view content_type, std::string_view body) {
  boost::json::value value = TRY(parse_body(content_type, body));
  json::Issues issues;
  json::Field root = json::Field::root(value, issues, "body");
  if (!root.present()) root.complain("model_attributes_type", "must be an object");
  auto time = decode_time(root.any_of({"expiresAt", "expires_at"}));
  if (!issues.empty()) return refuse(invalid_request(issues));
  return *time;
}

ApiResult<> check_metrics_event(std::string_view content_type, std::string_view body) {
  boost::json::value value = TRY(parse_body(content_type, body));
  json::Issues issues;
  json::Field root = json::Field::root(value, issues, "body");
  json::Field type = root.any_of({"eventType", "event_type"});
  if (std::string word = type.required_string(); type.present() && word != "sandbox.create") {
    type.complain("literal_error", "must be 'sandbox.create'");
  }
  json::Field duration = root.any_of({"createDurationMs", "create_duration_ms"});
  if (duration.required_integer() < 0) duration.complain("greater_than_equal", "must be at least 0");
  json::Field success = root["success"];
  if (!success.present()) success.complain("missing", "is required");
  success.boolean();
  root.any_of({"sandboxId", "sandbox_id"}).string();
  root["image"].string();
  if (!issues.empty()) return refuse(invalid_request(issues));
  return {};
}

}  // namespace osb::api
