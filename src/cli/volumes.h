#pragma once

// `osb volumes`.

#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/arguments.h"
#include "io/task.h"
#include "json/decode.h"

namespace osb::cli {

io::Task<int> run_volumes(VolumeOptions options);

// One row per volume below a heading, columns aligned; times relative to `now`.
std::string volume_table(const std::vector<json::bj::value>& volumes, WallTime now);

}  // namespace osb::cli
