#pragma once

// `osb pools`.

#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/arguments.h"
#include "io/task.h"
#include "json/decode.h"

namespace osb::cli {

io::Task<int> run_pools(PoolOptions options);

// One row per pool below a heading, columns aligned; times relative to `now`.
std::string pool_table(const std::vector<json::bj::value>& pools, WallTime now);

// The body of POST /pools. `text` is a template as somebody wrote it; "" makes one of the options.
Result<std::string> pool_body(const PoolOptions& options, std::string_view text);

}  // namespace osb::cli
