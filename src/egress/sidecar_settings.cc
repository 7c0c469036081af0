#include "egress/sidecar_settings.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "json/escape.h"

namespace osb::egress {
namespace {

constexpr std::string_view kPrefix = "OPENSANDBOX_EGRESS_";
constexpr size_t kHardMostRules = 65536;  // where "no limit" is asked for
constexpr std::chrono::seconds kDnsPatience(5), kLongestDnsPatience(120);
constexpr size_t kMostLines = 65536;

bool truthy(std::string_view value) {
  std::string word = to_lower(trim(value));
  return word == "1" || word == "true" || word == "yes" || word == "y" || word == "on";
}

std::vector<std::string_view> list_of(std::string_view value) {
  std::vector<std::string_view> out;
  for (std::string_view piece : split(value, ',')) {
    if (!trim(piece).empty()) out.push_back(trim(piece));
  }
  return out;
}

// There is one way to enforce, whatever was asked for; a word that nobody knows may have meant more than
// that.
Result<void> set_mode(SidecarSettings&, std::string_view value) {
  if (trim(value).empty()) return {};
  bool dns = false;
  for (std::string_view piece : split(value, '+')) {
    std::string word = to_lower(trim(piece));
    if (word != "dns" && word != "nft") return fail(Code::invalid_argument, "must be dns or dns+nft");
    dns |= word == "dns";
  }
  if (!dns) return fail(Code::invalid_argument, "must be dns or dns+nft");
  return {};
}

Result<void> set_rules(SidecarSettings& out, std::string_view value) {
  out.policy = TRY(parse_policy(value));
  return {};
}

Result<void> set_policy_file(SidecarSettings& out, std::string_view value) {
  if (!value.empty() && value[0] != '/') return fail(Code::invalid_argument, "must be a path from /");
  out.policy_file = value;
  return {};
}

Result<void> set_address(SidecarSettings& out, std::string_view value) {
  if (trim(value).empty()) return {};
  std::string_view text = trim(value);
  size_t colon = text.rfind(':');
  auto port = colon == text.npos ? std::nullopt : parse_number<uint16_t>(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  bool is_host =
      host.empty() || host == "localhost" || (sandbox::parse_ip(host) && bracketed == host.contains(':'));
  if (port.value_or(0) == 0 || !is_host)
    return fail(Code::invalid_argument, "must be a port with or without an address: :18080, 127.0.0.1:18080");
  out.api_host = host;
  out.api_port = *port;
  return {};
}

Result<void> set_token(SidecarSettings& out, std::string_view value) {
  out.token = value;
  return {};
}

Result<void> set_most_rules(SidecarSettings& out, std::string_view value) {
  auto number = parse_number<size_t>(trim(value));
  if (number) out.most_rules = *number == 0 ? kHardMostRules : std::min(*number, kHardMostRules);
  return {};
}

Result<void> set_name_servers(SidecarSettings& out, std::string_view value) {
  for (std::string_view one : list_of(value)) out.name_servers.push_back(TRY(parse_name_server(one)));
  if (out.name_servers.empty()) return fail(Code::invalid_argument, "names no server");
  return {};
}

Result<void> set_dns_patience(SidecarSettings& out, std::string_view value) {
  auto seconds = parse_number<uint32_t>(trim(value)).value_or(0);
  out.dns_patience =
      seconds == 0 ? kDnsPatience : std::min(std::chrono::seconds(seconds), kLongestDnsPatience);
  return {};
}

Result<void> set_doh(SidecarSettings& out, std::string_view value) {
  if (truthy(value)) out.https = Overlay::Https::closed;
  return {};
}

Result<void> set_doh_list(SidecarSettings& out, std::string_view value) {
  for (std::string_view one : list_of(value)) {
    auto target = sandbox::parse_target(one);
    if (target && target->kind == EgressTarget::Kind::prefix)
      out.resolvers.push_back(std::move(*target));
    else
      out.warnings.emplace_back("OPENSANDBOX_EGRESS_DOH_BLOCKLIST has something that is no address");
  }
  return {};
}

Result<void> set_webhook(SidecarSettings& out, std::string_view value) {
  if (trim(value).empty()) return {};
  out.deny_webhook = TRY(sandbox::parse_webhook(trim(value)));
  return {};
}

Result<void> set_id(SidecarSettings& out, std::string_view value) {
  constexpr size_t kMost = 256;
  if (value.size() > kMost) return fail(Code::invalid_argument, "is longer than 256 bytes");
  out.sandbox_id = trim(value);
  return {};
}

Result<void> set_log_level(SidecarSettings& out, std::string_view value) {
  out.log_level = trim(value);
  return {};
}

Result<void> set_interception(SidecarSettings&, std::string_view value) {
  if (!truthy(value)) return {};
  return fail(Code::unsupported,
              "asks for interception of TLS, which this sidecar does not have; leave it out");
}

struct Variable {
  std::string_view name;                                    // behind the prefix
  Result<void> (*set)(SidecarSettings&, std::string_view);  // null: it has no meaning here
  std::string_view why = {};
};

constexpr auto kVariables = std::to_array<Variable>({
    {"MODE", set_mode},
    {"RULES", set_rules},
    {"POLICY_FILE", set_policy_file},
    {"HTTP_ADDR", set_address},
    {"TOKEN", set_token},
    {"MAX_RULES", set_most_rules},
    {"LOG_LEVEL", set_log_level},
    {"DNS_UPSTREAM", set_name_servers},
    {"DNS_UPSTREAM_TIMEOUT", set_dns_patience},
    {"BLOCK_DOH_443", set_doh},
    {"DOH_BLOCKLIST", set_doh_list},
    {"DENY_WEBHOOK", set_webhook},
    {"SANDBOX_ID", set_id},
    {"MITMPROXY_TRANSPARENT", set_interception},
    {"DNS_UPSTREAM_PROBE", nullptr, "each lookup goes on to the next server when one does not answer"},
    {"DNS_UPSTREAM_PROBE_INTERVAL_SEC", nullptr, "servers are not probed"},
    {"NAMESERVER_EXEMPT", nullptr, "every lookup is judged, whatever server it is for"},
    {"METRICS_EXTRA_ATTRS", nullptr, "counters are read at /metrics, without labels of the operator"},
    {"MITMPROXY_PORT", nullptr, "TLS is not intercepted"},
    {"MITMPROXY_SCRIPT", nullptr, "TLS is not intercepted"},
    {"MITMPROXY_UPSTREAM_TRUST_DIR", nullptr, "TLS is not intercepted"},
    {"MITMPROXY_SSL_INSECURE", nullptr, "TLS is not intercepted"},
});

Result<void> set(SidecarSettings& out, std::string_view name, std::string_view value) {
  auto found = std::ranges::find(kVariables, name.substr(kPrefix.size()), &Variable::name);
  if (found == kVariables.end()) {
    out.warnings.push_back(std::string(name.substr(0, 80)) + " is unknown and has no effect");
    return {};
  }
  if (found->set == nullptr) {
    out.warnings.push_back(std::string(name) + " has no effect: " + std::string(found->why));
    return {};
  }
  auto done = found->set(out, value);
  if (!done) return fail(done.error().code, std::string(name) + ": " + done.error().message);
  return {};
}

// Of others, which mean something only together with ours.
void note_shared(SidecarSettings& out, std::string_view name, std::string_view value) {
  if (name == "OPENSANDBOX_LOG_OUTPUT") {
    std::string word = to_lower(trim(value));
    if (word == "stdout") out.log_output = LogOutput::standard_output;
    if (word != "stdout" && word != "stderr" && !word.empty())
      out.warnings.emplace_back("OPENSANDBOX_LOG_OUTPUT: only stdout or stderr is written; it is stderr");
  } else if (name == "OPENSANDBOX_CREDENTIAL_PROXY_SOCKET") {
    out.warnings.emplace_back(std::string(name) + " has no effect: TLS is not intercepted");
  } else if (name == "OTEL_EXPORTER_OTLP_ENDPOINT" || name == "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") {
    out.warnings.emplace_back(std::string(name) + " has no effect: counters are read at /metrics");
  }
}

}  // namespace

bool is_for_sidecar(const std::vector<std::string>& environment) {
  return std::ranges::any_of(environment, [](const std::string& one) { return one.starts_with(kPrefix); });
}

Result<SidecarSettings> sidecar_settings(const std::vector<std::string>& environment) {
  SidecarSettings out;
  for (const std::string& one : environment) {
    size_t equals = std::min(one.find('='), one.size());
    std::string_view name = std::string_view(one).substr(0, equals);
    std::string_view value = equals == one.size() ? "" : std::string_view(one).substr(equals + 1);
    if (name.starts_with(kPrefix))
      TRY(set(out, name, value));
    else
      note_shared(out, name, value);
  }
  if (out.https == Overlay::Https::closed && !out.resolvers.empty())
    out.https = Overlay::Https::closed_to_resolvers;
  if (out.policy.rules.size() > out.most_rules)
    return fail(Code::invalid_argument, "OPENSANDBOX_EGRESS_RULES has more rules than are allowed");
  return out;
}

Result<std::vector<Rule>> parse_always(std::string_view text, std::string_view action) {
  std::vector<Rule> rules;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    if (++number > kMostLines) return fail(Code::too_large, "more than 65536 lines");
    line = trim(line);
    if (line.empty() || line[0] == '#') continue;
    auto rule = make_rule(action, line);
    if (!rule) return fail(rule.error().code, "line " + std::to_string(number) + ": " + rule.error().message);
    rules.push_back(std::move(*rule));
  }
  return rules;
}

std::string to_file_text(const Policy& policy) {
  std::string out = "{\n  \"egress\": [";
  for (const Rule& rule : policy.rules) {
    out += &rule == &policy.rules.front() ? "\n" : ",\n";
    out += "    {\n      \"action\": \"";
    out += rule.allow ? "allow" : "deny";
    out += "\",\n      \"target\": ";
    json::append_string(out, rule.text);
    out += "\n    }";
  }
  out += policy.rules.empty() ? "]" : "\n  ]";
  out += ",\n  \"defaultAction\": \"";
  return out + (policy.allow_the_rest ? "allow" : "deny") + "\"\n}\n";
}

}  // namespace osb::egress
