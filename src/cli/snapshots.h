#pragma once

// `osb snapshot`, `osb fork`, `osb rollback`.

#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/arguments.h"
#include "io/task.h"
#include "json/decode.h"

namespace osb::cli {

io::Task<int> run_snapshots(SnapshotOptions options);

// One row per snapshot below a heading, columns aligned; times relative to `now`.
std::string snapshot_table(const std::vector<json::bj::value>& snapshots, WallTime now);

}  // namespace osb::cli
