#pragma once

// Keys that clients gave to their creates, so that one which is sent twice makes one sandbox. A key is stored
// before its sandbox is made, with the id that the sandbox will have: whether it came to be, the rows and
// events of that id say. Kept for a day.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "store/database.h"

namespace osb::store {

struct CreateKey {
  std::string owner = {}, key = {};
  std::string fingerprint = {};  // of the request that came with it
  std::string sandbox_id = {};
  WallTime at = {};
};

class CreateKeys {
 public:
  static constexpr auto kKept = std::chrono::hours(24);
  static constexpr int64_t kPruneStep = 1000;
  static Result<CreateKeys> open(Database& db);

  Result<std::optional<CreateKey>> find(std::string_view owner, std::string_view key, WallTime now);
  Result<void> put(const CreateKey& key);  // instead of an earlier one
  // At most kPruneStep at a time; true when there may be more.
  Result<bool> prune(WallTime now);

 private:
  std::optional<Statement> find_, put_, prune_, changes_;
};

}  // namespace osb::store
