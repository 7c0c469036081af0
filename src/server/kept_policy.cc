#include "server/kept_policy.h"

#include <boost/json.hpp>

#include "json/decode.h"

namespace osb::server {

sandbox::NetworkPolicy to_request(runtime::NetworkPolicy policy) {
  sandbox::NetworkPolicy out;
  out.allow_the_rest = policy.allow_the_rest;
  for (auto& rule : policy.egress) out.egress.push_back({rule.allow, std::move(rule.target)});
  return out;
}

std::string text_of_deny() { return to_text(runtime::NetworkPolicy{.allow_the_rest = false}); }

std::string to_text(const std::optional<runtime::NetworkPolicy>& policy) {
  if (!policy) return "";
  boost::json::array rules;
  for (const auto& rule : policy->egress)
    rules.push_back(boost::json::object{{"allow", rule.allow}, {"target", rule.target}});
  return json::print(
      boost::json::object{{"allowTheRest", policy->allow_the_rest}, {"rules", std::move(rules)}});
}

Result<sandbox::NetworkPolicy> policy_from(std::string_view text) {
  auto wrong = [] { return fail(Code::corrupt, "the network policy of a snapshot cannot be read"); };
  auto value = json::parse(text);
  if (!value) return wrong();
  json::Issues issues;
  auto field = json::Field::root(*value, issues, "policy", json::Reading::exact);
  sandbox::NetworkPolicy policy;
  auto rest = field["allowTheRest"].boolean();
  auto rules = field["rules"].array();
  if (!rest || !rules) return wrong();
  policy.allow_the_rest = *rest;
  for (const json::Field& rule : *rules) {
    auto allow = rule["allow"].boolean();
    if (!allow) return wrong();
    policy.egress.push_back({*allow, rule["target"].required_string()});
  }
  if (!issues.empty()) return wrong();
  return policy;
}

}  // namespace osb::server
