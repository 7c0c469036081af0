#pragma once

// The shape of `lifecycle` in a create request: hooks that execd runs. Unlike elsewhere, unknown members are
// mistakes.

#include <optional>
#include <string>
#include <vector>

#include "api/error.h"
#include "json/decode.h"

namespace osb::api {

struct Hook {
  std::string name, schedule;  // of periodic hooks
  std::vector<std::string> command;
  std::optional<int64_t> timeout_seconds;
};

struct Hooks {
  std::optional<Hook> pre_start;
  std::vector<Hook> periodic;
};

std::optional<Hooks> decode_hooks(const json::Field& field);

// What execd is told of them; 400 for a schedule that is none, and for too many.
ApiResult<std::string> check_hooks(const Hooks& hooks);

}  // namespace osb::api
