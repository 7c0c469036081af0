#pragma once

// A sandbox's network policy: an ordered list of rules and what happens to the rest. What is kept, shown and
// changed is this; what follows from it is in verdict.h.

#include <string>
#include <string_view>
#include <vector>

#include "sandbox/egress_target.h"

namespace osb::egress {

using sandbox::EgressTarget;

struct Rule {
  bool allow = false;
  std::string text;  // the target as it was written, without blanks around it
  EgressTarget target = {};
};

struct Policy {
  bool allow_the_rest = false;
  std::vector<Rule> rules = {};
};

inline constexpr size_t kMostPolicyBytes = 1 << 20;
inline constexpr size_t kMostRules = 4096;

// Code::invalid_argument: the sentence is for whoever wrote it. "", "null" and "{}" deny everything.
Result<Policy> parse_policy(std::string_view json);
// One that was checked already.
Result<Rule> make_rule(std::string_view action, std::string_view target);
// A JSON array of rules, at least one.
Result<std::vector<Rule>> parse_rules(std::string_view json);
// A JSON array of targets, at least one.
Result<std::vector<std::string>> parse_targets(std::string_view json);

// The given rules come first, later ones with the same target are dropped.
Policy merge(const Policy& policy, std::vector<Rule> rules);
// Without the rules of these targets.
Policy without(const Policy& policy, const std::vector<std::string>& targets);

// {"defaultAction":"deny","egress":[{"action":"allow","target":"example.com"}]}
std::string to_json(const Policy& policy);
// allow_all, deny_all or enforcing.
std::string_view mode_of(const Policy& policy);

}  // namespace osb::egress
