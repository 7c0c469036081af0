#pragma once

// The shape of networkPolicy and credentialProxy in a create request. What the rules mean is the egress
// process's business.

#include <string>
#include <vector>

#include "json/decode.h"

namespace osb::api {

struct NetworkRule {
  std::string action, target;
};

struct NetworkPolicy {
  std::optional<std::string> default_action;
  std::vector<NetworkRule> egress;
};

std::optional<NetworkPolicy> decode_network_policy(const json::Field& field);

}  // namespace osb::api
