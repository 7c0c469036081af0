#pragma once

// From the bytes of a request to a decoded value: media type, JSON, then the fields of one resource.

#include <boost/json/value.hpp>
#include <string_view>

#include "api/error.h"
#include "json/decode.h"

namespace osb::api {

inline constexpr size_t kMaxJsonBody = 1 << 20;

// application/json, text/json, or any type that ends in +json; parameters are ignored.
bool is_json_type(std::string_view content_type);
ApiResult<boost::json::value> parse_body(std::string_view content_type, std::string_view body);

// The issue types of values that have the right type but not the right content.
void complain_value(const json::Field& field, std::string why);  // value_error, "Value error, ..."

// For the few members that may be left out but have no null. The first name is the one that is told.
void complain_null(const json::Field& object, std::initializer_list<std::string_view> names,
                   std::string_view type, std::string_view wanted);

}  // namespace osb::api
