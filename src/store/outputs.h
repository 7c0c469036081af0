#pragma once

// The last part of what the entry processes of ended sandboxes wrote. A row goes with its sandbox.

#include <optional>
#include <string>
#include <string_view>

#include "store/database.h"

namespace osb::store {

struct Output {
  std::string text;
  bool truncated = false;
};

class Outputs {
 public:
  static Result<Outputs> open(Database& db);

  Result<void> put(std::string_view sandbox_id, const Output& output);
  Result<std::optional<Output>> find(std::string_view sandbox_id);
  Result<void> remove(std::string_view sandbox_id);

 private:
  std::optional<Statement> put_, find_, remove_;
};

}  // namespace osb::store
