#pragma once

// The strictness layer. A head that two parsers could read differently is how requests are smuggled past a
// proxy (two Host lines, foldings, odd Transfer-Encoding values, ...). Server and client refuse such a one
// while they read it (head_parse.h); check_request_head() is that code by itself, for tests. It wants the raw
// bytes of a head, up to and including the empty line. The rejection table is head_check_test.cc.

#include <string_view>

#include "base/error.h"

namespace osb::http {

inline constexpr size_t kMaxHeadBytes = 64 * 1024;
inline constexpr size_t kMaxHeaderFields = 128;
inline constexpr size_t kMaxTargetBytes = 16 * 1024;

// Code::invalid_argument with the reason; Code::too_large for the limits; Code::unsupported for a method,
// version or transfer coding that exists but is not served here.
Result<void> check_request_head(std::string_view head);

}  // namespace osb::http
