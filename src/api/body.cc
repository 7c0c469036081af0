#include "api/body.h"

#include "api/error_catalogue.h"
#include "base/strings.h"

namespace osb::api {

bool is_json_type(std::string_view content_type) {
  std::string type = to_lower(trim(content_type.substr(0, content_type.find(';'))));
  return type == "application/json" || type == "text/json" ||
         (type.find('/') != type.npos && type.ends_with("+json"));
}

ApiResult<boost::json::value> parse_body(std::string_view content_type, std::string_view body) {
  if (body.empty())
    return refuse(invalid_request({"missing", {std::string("body")}, "a JSON body is required"}));
  if (!is_json_type(content_type)) return refuse(not_json());
  auto value = json::parse(body);
  if (!value) return refuse(invalid_json(value.error()));
  return std::move(*value);
}

void complain_value(const json::Field& field, std::string why) {
  field.complain("value_error", "Value error, " + std::move(why));
}

}  // namespace osb::api
