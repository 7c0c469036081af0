#include "egress/policy.h"

#include <set>

#include "base/strings.h"
#include "json/decode.h"
#include "json/escape.h"

namespace osb::egress {
namespace {

namespace bj = boost::json;

Result<bool> parse_action(std::string_view given) {
  std::string action = to_lower(trim(given));
  if (action.empty() || action == "deny") return false;
  if (action == "allow") return true;
  return fail(Code::invalid_argument,
              "unsupported action \"" + action.substr(0, 40) + "\"; write allow or deny");
}

// Names of members in any case, as other OpenSandbox servers read them.
std::string text_of(const json::Field& field) { return field.string().value_or(""); }

Result<void> check(const json::Issues& issues) {
  if (issues.empty()) return {};
  const json::Issue& issue = issues.list().front();
  return fail(Code::invalid_argument, json::to_string(issue.path) + ": " + issue.message);
}

Result<std::vector<Rule>> read_rules(const std::vector<json::Field>& fields) {
  std::vector<Rule> rules;
  for (const json::Field& field : fields) {
    if (!field.present()) return fail(Code::invalid_argument, "a rule must be an object");
    std::string action = text_of(field["action"]), target = text_of(field["target"]);
    rules.push_back(TRY(make_rule(action, target)));
  }
  return rules;
}

std::string key_of(std::string_view target) { return to_lower(trim(target)); }

}  // namespace

Result<Rule> make_rule(std::string_view action, std::string_view target) {
  Rule rule;
  rule.allow = TRY(parse_action(action));
  rule.text = trim(target);
  rule.target = TRY(sandbox::parse_target(target));
  return rule;
}

Result<Policy> parse_policy(std::string_view text) {
  if (trim(text).empty()) return Policy{};
  bj::value value = TRY(json::parse(text));
  if (value.is_null()) return Policy{};
  json::Issues issues;
  auto body = json::Field::root(value, issues, "policy", json::Reading::exact);
  Policy policy;
  std::string rest = to_lower(trim(text_of(body["defaultAction"])));
  auto fields = body["egress"].array();
  TRY(check(issues));
  if (rest != "" && rest != "allow" && rest != "deny")
    return fail(Code::invalid_argument, "defaultAction must be allow or deny");
  policy.allow_the_rest = rest == "allow";
  if (fields) policy.rules = TRY(read_rules(*fields));
  TRY(check(issues));
  return policy;
}

Result<std::vector<Rule>> parse_rules(std::string_view text) {
  bj::value value = TRY(json::parse(text));
  json::Issues issues;
  auto fields = json::Field::root(value, issues, "rules", json::Reading::exact).array();
  if (!fields) return fail(Code::invalid_argument, "must be an array of rules");
  if (fields->empty()) return fail(Code::invalid_argument, "empty array");
  auto rules = TRY(read_rules(*fields));
  TRY(check(issues));
  return rules;
}

Result<std::vector<std::string>> parse_targets(std::string_view text) {
  bj::value value = TRY(json::parse(text));
  json::Issues issues;
  auto targets = json::Field::root(value, issues, "targets", json::Reading::exact).string_list();
  TRY(check(issues));
  if (!targets) return fail(Code::invalid_argument, "must be an array of targets");
  if (targets->empty()) return fail(Code::invalid_argument, "empty array");
  return std::move(*targets);
}

Policy merge(const Policy& policy, std::vector<Rule> rules) {
  Policy merged{policy.allow_the_rest};
  std::set<std::string> seen;
  rules.insert(rules.end(), policy.rules.begin(), policy.rules.end());
  for (Rule& rule : rules) {
    if (seen.insert(key_of(rule.text)).second) merged.rules.push_back(std::move(rule));
  }
  return merged;
}

Policy without(const Policy& policy, const std::vector<std::string>& targets) {
  std::set<std::string> gone;
  for (const std::string& target : targets) gone.insert(key_of(target));
  Policy left = policy;
  std::erase_if(left.rules, [&](const Rule& rule) { return gone.contains(key_of(rule.text)); });
  return left;
}

std::string to_json(const Policy& policy) {
  std::string out = "{\"defaultAction\":\"";
  out += policy.allow_the_rest ? "allow" : "deny";
  out += "\",\"egress\":[";
  for (const Rule& rule : policy.rules) {
    if (&rule != &policy.rules.front()) out += ",";
    out += rule.allow ? R"({"action":"allow","target":)" : R"({"action":"deny","target":)";
    json::append_string(out, rule.text);
    out += "}";
  }
  return out + "]}";
}

std::string_view mode_of(const Policy& policy) {
  if (!policy.rules.empty()) return "enforcing";
  return policy.allow_the_rest ? "allow_all" : "deny_all";
}

}  // namespace osb::egress
