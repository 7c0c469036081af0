#include "runtime/network_policy_json.h"

#include "json/escape.h"

namespace osb::runtime {

std::string to_json(const NetworkPolicy& policy) {
  std::string out = policy.allow_the_rest ? R"({"defaultAction":"allow","egress":[)"
                                          : R"({"defaultAction":"deny","egress":[)";
  for (size_t i = 0; i < policy.egress.size(); ++i) {
    if (i > 0) out += ",";
    out += policy.egress[i].allow ? R"({"action":"allow","target":)" : R"({"action":"deny","target":)";
    json::append_string(out, policy.egress[i].target);
    out += "}";
  }
  return out + "]}";
}

NetworkPolicy read_policy(const json::Field& field) {
  NetworkPolicy policy{.allow_the_rest = field["defaultAction"].required_string() == "allow"};
  for (const json::Field& rule : field["egress"].array().value_or(std::vector<json::Field>()))
    policy.egress.push_back({rule["action"].required_string() == "allow", rule["target"].required_string()});
  return policy;
}

}  // namespace osb::runtime
