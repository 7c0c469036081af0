#include "egress/verdict.h"

#include <algorithm>

namespace osb::egress {
namespace {

// DNS over TLS: lookups that nobody here would see.
constexpr uint16_t kDnsOverTls = 853, kHttps = 443;

std::string rule_text(const Rule& rule, std::string_view whose) {
  return std::string(rule.allow ? "allow " : "deny ") + rule.text + std::string(whose);
}

template <class What>
const Rule* first_match(const std::vector<Rule>& rules, const What& what) {
  auto found = std::ranges::find_if(rules, [&](const Rule& rule) { return matches(rule.target, what); });
  return found == rules.end() ? nullptr : &*found;
}

const Rule* first_match(const std::vector<Rule>& rules, const IpAddress& address, bool allow) {
  auto found = std::ranges::find_if(
      rules, [&](const Rule& rule) { return rule.allow == allow && matches(rule.target, address); });
  return found == rules.end() ? nullptr : &*found;
}

bool closes_https(const Overlay& overlay, const IpAddress& address) {
  if (overlay.https != Overlay::Https::closed_to_resolvers) return overlay.https == Overlay::Https::closed;
  return std::ranges::any_of(overlay.resolvers, [&](const auto& one) { return matches(one, address); });
}

constexpr std::string_view kOperator = " (of the operator)";

Verdict by_operator(const Rule& rule, bool by_address = false) {
  return {rule.allow, rule_text(rule, kOperator), false, by_address, Ground::operator_rule};
}

Verdict closed(std::string why, Ground ground) { return {false, std::move(why), false, false, ground}; }

}  // namespace

std::string_view to_string(Ground ground) {
  switch (ground) {
    case Ground::rule:
      return "policy";
    case Ground::operator_rule:
      return "operator";
    case Ground::standard:
      return "default";
    case Ground::address:
      return "address";
    case Ground::form:
      return "form";
    case Ground::load:
      return "load";
  }
  return "policy";
}

Verdict Judge::rest() const {
  return {policy_.allow_the_rest, policy_.allow_the_rest ? "default allow" : "default deny", true, false,
          Ground::standard};
}

Verdict Judge::name(std::string_view name) const {
  if (const Rule* rule = first_match(overlay_.deny, name)) return by_operator(*rule);
  if (const Rule* rule = first_match(overlay_.allow, name)) return by_operator(*rule);
  if (const Rule* rule = first_match(policy_.rules, name)) return {rule->allow, rule_text(*rule, "")};
  return rest();
}

bool Judge::operator_allows(std::string_view name) const {
  return !first_match(overlay_.deny, name) && first_match(overlay_.allow, name);
}

Verdict Judge::connection(const IpAddress& address, uint16_t port, const std::vector<std::string>& names,
                          bool own) const {
  Special kind = special(address);
  if (kind.reach == Reach::nowhere) return closed(std::string(kind.what), Ground::address);
  if (const Rule* rule = first_match(overlay_.deny, address)) return by_operator(*rule);
  if (const Rule* rule = first_match(policy_.rules, address, false)) return {false, rule_text(*rule, "")};
  if (port == kDnsOverTls)
    return closed("DNS over TLS is closed: lookups go through port 53", Ground::address);
  if (port == kHttps && closes_https(overlay_, address))
    return closed("port 443 is closed there, because of DNS over HTTPS (of the operator)",
                  Ground::operator_rule);
  const Rule* rule = first_match(overlay_.allow, address);
  if (rule) return by_operator(*rule, true);
  if ((rule = first_match(policy_.rules, address, true))) return {true, rule_text(*rule, ""), false, true};
  if (kind.reach == Reach::closed || own) {
    for (const std::string& one : names) {
      if (operator_allows(one)) return name(one);
    }
    return closed(own ? "an address of the host itself" : std::string(kind.what), Ground::address);
  }
  Verdict last = rest();
  for (const std::string& one : names) {
    last = name(one);
    if (last.allow) return last;
  }
  return last;
}

bool Judge::may_answer(std::string_view of, const IpAddress& address, bool own) const {
  return connection(address, 0, {std::string(of)}, own).allow;
}

Verdict Judge::spoken(const Verdict& connection, const IpAddress& to, std::string_view host) const {
  if (auto address = sandbox::parse_ip(host)) {
    // Its own address in place of a name says nothing that the connection itself does not say. Another one is
    // for somebody who passes it on.
    if (sandbox::plain(*address) == to) return connection;
    Verdict there = this->connection(sandbox::plain(*address), 0, {}, false);
    return there.allow ? connection : there;
  }
  auto normal = sandbox::normal_name(host);
  if (!normal) return closed("what the client calls its host is no host name", Ground::form);
  Verdict named = name(*normal);
  if (named.allow || (connection.by_address && named.by_default)) return connection;
  return named;
}

bool Judge::looks_at_names(const Verdict& connection) const {
  auto denies_name = [](const Rule& rule) {
    return !rule.allow && rule.target.kind != EgressTarget::Kind::prefix;
  };
  bool by_default = !policy_.allow_the_rest && !connection.by_address;
  return by_default || std::ranges::any_of(policy_.rules, denies_name) ||
         std::ranges::any_of(overlay_.deny, denies_name);
}

std::string explain(const Verdict& verdict, std::string_view host, uint16_t port) {
  std::string where(host);
  if (port != 0) where += " port " + std::to_string(port);
  std::string out = "The network policy of this sandbox does not allow " + where + ": " + verdict.rule + ". ";
  out +=
      "Allow it with a rule, for example: PATCH /policy at the endpoint of port 18080, with the body "
      "[{\"action\":\"allow\",\"target\":\"" +
      std::string(host) + "\"}]";
  return out + ".";
}

}  // namespace osb::egress
