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

void complain_null(const json::Field& object, std::initializer_list<std::string_view> names,
                   std::string_view type, std::string_view wanted) {
  const auto* members = object.raw() ? object.raw()->if_object() : nullptr;
  for (std::string_view name : names) {
    const auto* value = members ? members->if_contains(name) : nullptr;
    if (value && value->is_null())
      object.any_of(names).complain(std::string(type), "must be " + std::string(wanted) + ", not null");
  }
}

}  // namespace osb::api
