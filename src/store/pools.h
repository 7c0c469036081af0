#pragma once

// The rows of pools, and of their sandboxes that wait. A member's row is there before anything of it is made
// and goes after everything of it is removed, or in the transaction that makes it somebody's sandbox: it is
// never both.

#include <optional>
#include <string_view>
#include <vector>

#include "sandbox/pool.h"
#include "sandbox/principal.h"
#include "store/database.h"

namespace osb::store {

using sandbox::Pool;
using sandbox::PoolMember;

class Pools {
 public:
  static Result<Pools> open(Database& db);

  Result<bool> insert(const Pool& row);  // false: there is one of this owner and name
  Result<std::optional<Pool>> find(std::string_view owner, std::string_view name);
  // By owner and name.
  Result<std::vector<Pool>> all();
  Result<bool> set_capacity(std::string_view owner, std::string_view name,
                            const sandbox::PoolCapacity& capacity);
  Result<bool> remove(std::string_view owner, std::string_view name);

  Result<void> insert_member(const PoolMember& row);
  Result<bool> set_member_warm(std::string_view handle, std::string_view identity, std::string_view warmth);
  Result<bool> remove_member(std::string_view handle);
  Result<std::vector<PoolMember>> members();

 private:
  std::optional<Statement> insert_, find_, all_, capacity_, remove_, insert_member_, warm_, remove_member_,
      members_;
};

}  // namespace osb::store
