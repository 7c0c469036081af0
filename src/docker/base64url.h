#pragma once

// Base64 with the alphabet for URLs and with padding, as an engine reads X-Registry-Auth.

#include <string>
#include <string_view>

namespace osb::docker {

std::string to_base64url(std::string_view bytes);

}  // namespace osb::docker
