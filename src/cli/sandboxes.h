#pragma once

// `osb rm`, and the table of `osb ls`.

#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/arguments.h"
#include "io/task.h"
#include "json/decode.h"

namespace osb::cli {

io::Task<int> remove_sandboxes(RmOptions options);

// One row per sandbox below a heading, columns aligned; times relative to `now`.
std::string sandbox_table(const std::vector<json::bj::value>& sandboxes, WallTime now);

}  // namespace osb::cli
