#include "api/network_policy.h"

#include "api/body.h"

namespace osb::api {

std::optional<NetworkPolicy> decode_network_policy(const json::Field& field) {
  if (!field.present()) return std::nullopt;
  NetworkPolicy policy;
  policy.default_action = field.any_of({"defaultAction", "default_action"}).string();
  complain_null(field, {"egress"}, "list_type", "a list");
  if (auto rules = field["egress"].array()) {
    for (const json::Field& rule : *rules) {
      if (!rule.present()) {
        rule.complain("model_attributes_type", "must be an object");
        continue;
      }
      json::Field target = rule["target"];
      policy.egress.push_back({rule["action"].required_string(), target.required_string()});
      if (target.present() && target.raw()->is_string() && policy.egress.back().target.empty()) {
        target.complain("string_too_short", "must have at least 1 character");
      }
    }
  }
  return policy;
}

}  // namespace osb::api
