#pragma once

// What pools and volumes have in common: they are listed, and removed by their names.

#include "base/clock.h"
#include "cli/api.h"

namespace osb::cli {

using TableOf = std::string (*)(const std::vector<json::bj::value>& items, WallTime now);
Task<Result<void>> list_named(Api& api, std::string target, bool as_json, TableOf table);

// Each by itself: one that cannot be removed does not keep the others. The exit status.
Task<int> remove_named(Api& api, std::string below, std::vector<std::string> names);

}  // namespace osb::cli
