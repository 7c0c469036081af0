#pragma once

// Whose database it is. Two services that write into one overwrite each other's rows, and each takes the
// other's sandboxes for ends that nobody watched; so a database says which service it belongs to, and no
// other opens it.

#include <string>

#include "store/database.h"

namespace osb::store {

struct Owner {
  std::string identity = {};   // of the service; empty where nobody gave it one
  std::string state_dir = {};  // where its sandboxes are: an identity for those without, a hint for people
};

// Code::already_exists: it is another service's. Writes nothing.
Result<void> check_owner(Database& db, const Owner& owner);
// Notes the owner when it is not noted yet.
Result<void> note_owner(Database& db, const Owner& owner);

}  // namespace osb::store
