#pragma once

// What a gateway pushes into a list of Redis when it has seen a use of a sandbox: who was used, and when.

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace osb::server {

struct RenewIntent {
  std::string sandbox;
  WallTime observed = {};
};

inline constexpr size_t kMaxIntent = 16384;

// {"sandbox_id":"...","observed_at":"2026-01-02T03:04:05.123456789Z"} and members that are not read.
// Code::invalid_argument for anything else.
Result<RenewIntent> parse_renew_intent(std::string_view text);

}  // namespace osb::server
