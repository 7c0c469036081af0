#include "api/list_query.h"

#include <fmt/format.h>

#include <limits>
#include <map>

#include "api/error_catalogue.h"
#include "base/strings.h"

namespace osb::api {
namespace {

std::unexpected<ApiError> bad_parameter(std::string_view name, std::string type, std::string why) {
  return refuse(
      invalid_request({std::move(type), {std::string("query"), std::string(name)}, std::move(why)}));
}

// The parameter's value is itself a query string, so it is decoded a second time. Strict: every piece is a
// pair.
ApiResult<std::vector<std::pair<std::string, std::string>>> decode_metadata(std::string_view text) {
  std::map<std::string, std::string> pairs;
  if (text.empty()) return std::vector<std::pair<std::string, std::string>>{};
  for (std::string_view piece : split(text, '&')) {
    size_t equals = piece.find('=');
    if (equals == piece.npos) return refuse(invalid_metadata_filter());
    auto key = percent_decode(piece.substr(0, equals), Plus::space);
    auto value = percent_decode(piece.substr(equals + 1), Plus::space);
    if (!key || !value) return refuse(invalid_metadata_filter());
    pairs.insert_or_assign(std::move(*key), std::move(*value));
  }
  return std::vector<std::pair<std::string, std::string>>(pairs.begin(), pairs.end());
}

}  // namespace

ApiResult<int64_t> integer_parameter(const http::Query& query, std::string_view name, Range range) {
  auto text = query.get(name);
  if (!text) return range.fallback;
  std::string_view digits = trim(*text);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  auto value = parse_number<int64_t>(digits);
  if (!value) return bad_parameter(name, "int_parsing", "must be an integer");
  if (*value < range.low) {
    return bad_parameter(name, "greater_than_equal", fmt::format("must be at least {}", range.low));
  }
  if (*value > range.high)
    return bad_parameter(name, "less_than_equal", fmt::format("must be at most {}", range.high));
  return *value;
}

ApiResult<bool> boolean_parameter(const http::Query& query, std::string_view name, bool fallback) {
  auto text = query.get(name);
  if (!text) return fallback;
  for (std::string_view word : {"true", "1", "yes", "on", "t", "y"}) {
    if (iequals(*text, word)) return true;
  }
  for (std::string_view word : {"false", "0", "no", "off", "f", "n"}) {
    if (iequals(*text, word)) return false;
  }
  return bad_parameter(name, "bool_parsing", "must be true or false");
}

ApiResult<ListQuery> decode_list_query(std::string_view raw_query) {
  ListQuery out;
  if (raw_query.empty()) return out;
  http::Query query(raw_query);
  // The product page * pageSize must not overflow.
  out.page = TRY(integer_parameter(query, "page", {1, std::numeric_limits<int64_t>::max() / 1000, 1}));
  out.page_size = TRY(integer_parameter(query, "pageSize", {1, 200, 20}));
  if (auto words = query.all("state"); !words.empty()) {
    out.filter.states.emplace();
    for (const std::string& word : words) {
      if (auto state = sandbox::state_from(word))
        out.filter.states->push_back(*state);  // an unknown word matches nothing
    }
  }
  if (auto text = query.get("metadata")) out.filter.metadata = TRY(decode_metadata(*text));
  return out;
}

}  // namespace osb::api
