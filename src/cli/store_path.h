#pragma once

// [store] path, looked at before anything starts: a mistake there must not cost somebody a file, nor end in a
// service that has a port and no database.

#include "base/error.h"
#include "runtime/native/service.h"
#include "server/config.h"

namespace osb::cli {

// Fine: a file that does not exist yet in a directory that does, and a database of SQLite (an empty file is
// one), where `account` may write. Anything else is refused; nothing is made or changed. No path is fine:
// below the state directory. A read-only disk is fine, too: the server runs on one.
Result<void> check_store_path(const server::Config& config, const runtime::ServiceAccount& account);

}  // namespace osb::cli
