#pragma once

// The last part of what the entry processes of ended sandboxes wrote. A row goes with its sandbox.

#include <optional>
#include <string>
#include <string_view>

#include "sandbox/sandbox.h"
#include "store/database.h"

namespace osb::store {

using sandbox::Output;

class Outputs {
 public:
  static Result<Outputs> open(Database& db);

  // Belongs to whoever owns the sandbox, whose row has to be there.
  Result<void> put(std::string_view sandbox_id, const Output& output);
  Result<std::optional<Output>> find(const sandbox::Scope& scope, std::string_view sandbox_id);
  Result<void> remove(std::string_view sandbox_id);

 private:
  std::optional<Statement> put_, find_, remove_;
};

}  // namespace osb::store
