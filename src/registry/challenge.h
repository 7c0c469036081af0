#pragma once

// WWW-Authenticate: what a registry wants to see before it answers.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::registry {

struct Challenge {
  std::string scheme;                         // lower case: basic, bearer
  std::map<std::string, std::string> params;  // names in lower case; the first of a name counts

  std::string_view get(const std::string& name) const;  // "" when it is not there
};

// One field may have several challenges. Code::corrupt for what has no meaning, or is larger than any real
// one.
Result<std::vector<Challenge>> parse_challenges(std::string_view field);

}  // namespace osb::registry
