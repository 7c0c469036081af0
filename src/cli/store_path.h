#pragma once

// [store] path, looked at before anything starts: a mistake there must not cost somebody a file.

#include <string>

#include "base/error.h"

namespace osb::cli {

// Fine: a file that does not exist yet in a directory that does, and a database of SQLite (an empty file is
// one). Anything else is refused; nothing is made or changed. "" is fine: below the state directory.
Result<void> check_store_path(const std::string& path);

}  // namespace osb::cli
