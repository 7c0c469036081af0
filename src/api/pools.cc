#include "api/pools.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/body.h"
#include "api/error_catalogue.h"
#include "base/sha256.h"
#include "json/escape.h"

namespace osb::api {
namespace {

using json::Field;

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

std::string decode_name(const Field& field) {
  constexpr size_t kLongest = 253;
  std::string name = field.required_string();
  if (!field.present()) return name;
  if (name.size() > kLongest) field.complain("string_too_long", "must have at most 253 characters");
  bool fits = !name.empty() && is_word(name.front()) && is_word(name.back()) &&
              std::ranges::all_of(name, [](char c) { return is_word(c) || c == '-'; });
  if (!fits) {
    field.complain("string_pattern_mismatch",
                   "must consist of a-z, 0-9 and '-', and begin and end with a letter or a digit");
  }
  return name;
}

int64_t decode_count(const Field& field) {
  int64_t count = field.required_integer();
  if (count < 0) field.complain("greater_than_equal", "must be at least 0");
  if (count > kMostPooled) field.complain("less_than_equal", fmt::format("must be at most {}", kMostPooled));
  return count;
}

sandbox::PoolCapacity decode_capacity(const Field& field) {
  if (!field.present()) {
    field.complain("missing", "is required");
    return {};
  }
  return {.buffer_min = decode_count(field.any_of({"bufferMin", "buffer_min"})),
          .buffer_max = decode_count(field.any_of({"bufferMax", "buffer_max"})),
          .pool_min = decode_count(field.any_of({"poolMin", "pool_min"})),
          .pool_max = decode_count(field.any_of({"poolMax", "pool_max"}))};
}

// Numbers that contradict each other could never be kept.
ApiResult<> check_capacity(const sandbox::PoolCapacity& capacity) {
  if (capacity.buffer_min > capacity.buffer_max)
    return refuse(invalid_parameter("capacitySpec.bufferMin", "must be at most bufferMax"));
  if (capacity.pool_min > capacity.pool_max)
    return refuse(invalid_parameter("capacitySpec.poolMin", "must be at most poolMax"));
  return {};
}

// Of two templates that differ, two words.
std::string revision_of(std::string_view text) {
  std::string out;
  auto digest = sha256_digest(text);
  for (size_t i = 0; i < 8; ++i) fmt::format_to(std::back_inserter(out), "{:02x}", digest[i]);
  return out;
}

}  // namespace

ApiResult<PoolBody> decode_pool(std::string_view content_type, std::string_view body) {
  boost::json::value value = TRY(parse_body(content_type, body));
  json::Issues issues;
  Field root = Field::root(value, issues, "body");
  PoolBody out;
  out.name = decode_name(root["name"]);
  Field shape = root["template"];
  out.shape = decode_template(shape);
  out.capacity = decode_capacity(root.any_of({"capacitySpec", "capacity_spec"}));
  if (!issues.empty()) return refuse(invalid_request(issues));
  out.text = json::print(*shape.raw());
  if (out.text.size() > kMaxTemplate)
    return refuse(invalid_parameter("template", fmt::format("must have at most {} bytes", kMaxTemplate)));
  TRY(check_capacity(out.capacity));
  return out;
}

ApiResult<sandbox::PoolCapacity> decode_pool_capacity(std::string_view content_type, std::string_view body) {
  boost::json::value value = TRY(parse_body(content_type, body));
  json::Issues issues;
  Field root = Field::root(value, issues, "body");
  auto capacity = decode_capacity(root.any_of({"capacitySpec", "capacity_spec"}));
  if (!issues.empty()) return refuse(invalid_request(issues));
  TRY(check_capacity(capacity));
  return capacity;
}

ApiResult<CreateBody> decode_stored_template(std::string_view text) {
  boost::json::value value = TRY(parse_body("application/json", text));
  json::Issues issues;
  CreateBody body = decode_template(Field::root(value, issues, "template"));
  if (!issues.empty()) return refuse(invalid_request(issues));
  return body;
}

void append_pool(std::string& out, const sandbox::PoolView& view) {
  const auto& [pool, status] = view;
  json::append_string(out.append("{\"name\":"), pool.name);
  fmt::format_to(
      std::back_inserter(out),
      R"(,"capacitySpec":{{"bufferMax":{},"bufferMin":{},"poolMax":{},"poolMin":{}}},"status":{{"total":{},"allocated":{},"available":{},"pending":{},"revision":"{}")",
      pool.capacity.buffer_max, pool.capacity.buffer_min, pool.capacity.pool_max, pool.capacity.pool_min,
      status.total, status.allocated, status.available, status.pending, revision_of(pool.shape));
  if (!status.message.empty()) json::append_string(out.append(",\"message\":"), status.message);
  if (status.retry_at) out.append(",\"retryAt\":\"").append(format_api_time(*status.retry_at)).append("\"");
  out.append("},\"createdAt\":\"").append(format_api_time(pool.created)).append("\"}");
}

}  // namespace osb::api
