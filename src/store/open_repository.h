#pragma once

// The repository that a service uses. Which one it is, is decided here and nowhere above.

#include <memory>
#include <string>

#include "store/repository.h"

namespace osb::store {

// The service that a database belongs to (owner.h); not to be confused with the owners of sandboxes.
struct DatabaseOwner {
  std::string identity = {};   // of the service; empty where nobody gave it one
  std::string state_dir = {};  // where its sandboxes are: an identity for those without, a hint for people
};

// Makes what is missing. Errors that no later attempt can cure have a code of their own: already_exists
// (another service's), corrupt (no database), unsupported (a newer schema), permission_denied; the last
// one, with EROFS, may pass.
Result<std::unique_ptr<Repository>> open_repository(const std::string& path, const DatabaseOwner& owner);

}  // namespace osb::store
