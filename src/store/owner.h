#pragma once

// Whose database it is. Two services that write into one overwrite each other's rows, and each takes the
// other's sandboxes for ends that nobody watched; so a database says which service it belongs to, and no
// other opens it.

#include "store/database.h"
#include "store/open_repository.h"

namespace osb::store {

// Code::already_exists: it is another service's. Writes nothing.
Result<void> check_owner(Database& db, const DatabaseOwner& owner);
// Notes the owner when it is not noted yet.
Result<void> note_owner(Database& db, const DatabaseOwner& owner);

}  // namespace osb::store
