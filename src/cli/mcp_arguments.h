#pragma once

// The arguments of a tool call. Reading collects every mistake; ok() is asked before anything is done.

#include <optional>
#include <string_view>

#include "json/decode.h"

namespace osb::cli {

struct McpArguments {
  json::Field root;
  json::Issues& issues;

  json::Field operator[](std::string_view name) const { return root[name]; }
  // Code::invalid_argument with where and why; never with what was given.
  Result<void> ok() const;
};

std::optional<double> number_of(json::Field field);

}  // namespace osb::cli
