#include "sandbox/principal.h"

namespace osb::sandbox {

Scope Scope::of(const Principal& who) {
  Scope scope;
  scope.owner_ = who.owner;
  scope.sandbox_ = who.sandbox;
  return scope;
}

bool Scope::covers(std::string_view owner, std::string_view id) const {
  if (!owner_) return true;
  if (!sandbox_.empty() && id == sandbox_) return true;
  // A row without an owner belongs to nobody, and nobody is not somebody.
  return !owner_->empty() && *owner_ == owner;
}

}  // namespace osb::sandbox
