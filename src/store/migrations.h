#pragma once

// The schema as a list of steps. Step n turns version n into n+1 and never changes once released; PRAGMA
// user_version says how many have run.

#include <span>

#include "store/database.h"

namespace osb::store {

std::span<const char* const> migrations();

// Runs the steps that are missing, each in its own transaction. Refuses a database of a newer version than
// this program.
Result<void> migrate(Database& db, std::span<const char* const> steps = migrations());

}  // namespace osb::store
