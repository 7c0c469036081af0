#pragma once

// The API for people: a page without scripts or anything from elsewhere, made from its OpenAPI description.

#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::server {

// specs/openapi.json, which the executable carries.
std::string_view openapi_text();

Result<std::string> api_page(std::string_view openapi);

}  // namespace osb::server
