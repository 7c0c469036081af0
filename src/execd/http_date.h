#pragma once

// Dates of HTTP header fields: "Sun, 06 Nov 1994 08:49:37 GMT".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace osb::execd {

std::string format_http_date(int64_t seconds_since_1970);
// Only the form above, the one every sender uses today.
std::optional<int64_t> parse_http_date(std::string_view text);

}  // namespace osb::execd
