#include "api/create_rules.h"

#include <fmt/format.h>

#include <array>

#include "api/error_catalogue.h"
#include "base/machine.h"
#include "base/shell_words.h"
#include "base/strings.h"

namespace osb::api {
namespace {

constexpr std::string_view kExtensionPrefix = "opensandbox.extensions.";
constexpr const char* kReadOnlyRoot = "opensandbox.extensions.read-only-root";
constexpr std::string_view kEgressPrefix = "OPENSANDBOX_EGRESS_";
// Settings of the egress process that a request may pass on; without a policy there is nothing to set.
constexpr std::array<std::string_view, 11> kEgressKeys = {
    "LOG_LEVEL",
    "DNS_UPSTREAM_TIMEOUT",
    "MITMPROXY_SSL_INSECURE",
    "MITMPROXY_TRANSPARENT",
    "MITMPROXY_EXTRA_PORTS",
    "DENY_WEBHOOK",
    "METRICS_EXTRA_ATTRS",
    "CREDENTIAL_VAULT_REQUIRE_TLS",
    "CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH",
    "CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS",
    "POLICY_FILE",
};
constexpr std::string_view kNotBuilt = "this server does not have this part yet";

// Something that protects is not switched on by a word that was meant otherwise, nor left off by a misspelt
// one.
ApiResult<bool> wants_read_only_root(const CreateRequest& r) {
  auto found = r.extensions.find(kReadOnlyRoot);
  if (found == r.extensions.end()) return false;
  if (found->second == "true" || found->second == "false") return found->second == "true";
  return refuse(invalid_parameter("extensions." + std::string(kReadOnlyRoot), "must be true or false"));
}

ApiResult<> check_extensions(const CreateRequest& r) {
  auto found = r.extensions.find("access.renew.extend.seconds");
  if (found == r.extensions.end()) return {};
  auto seconds = parse_number<int64_t>(trim(found->second));
  if (!seconds || *seconds < 300 || *seconds > 86400) {
    return refuse(invalid_parameter("extensions.access.renew.extend.seconds",
                                    "must be a whole number from 300 to 86400"));
  }
  // Who asks for it relies on it: a sandbox that ends in the middle of its work is worse than a refusal.
  ApiError error =
      unsupported("extensions.access.renew.extend.seconds",
                  "this server does not renew a sandbox because it is used; leave it out and give a "
                  "longer timeout");
  error.remedy =
      "leave extensions.access.renew.extend.seconds out of the request; give a longer timeout, or renew with "
      "POST /sandboxes/{id}/renew-expiration";
  return refuse(std::move(error));
}

ApiResult<> check_unbuilt_sources(const CreateRequest& r) {
  if (r.snapshot_id) return refuse(unsupported("snapshotId", std::string(kNotBuilt)));
  if (r.template_id) return refuse(unsupported("templateId", std::string(kNotBuilt)));
  if (r.hooks) return refuse(unsupported("lifecycle", std::string(kNotBuilt)));
  if (!r.pool_ref().empty()) return refuse(unsupported("extensions.poolRef", std::string(kNotBuilt)));
  return {};
}

ApiResult<std::string> check_platform(const CreateRequest& r, const CreateRules& rules) {
  if (!r.platform) return std::string();
  const auto& [os, arch] = *r.platform;
  if (os != "linux" && os != "windows")
    return refuse(invalid_parameter("platform.os", "must be linux or windows"));
  if (arch != "amd64" && arch != "arm64")
    return refuse(invalid_parameter("platform.arch", "must be amd64 or arm64"));
  if (os != "linux" || arch != rules.arch) {
    return refuse(unsupported("platform", fmt::format("this host runs linux/{} only", rules.arch)));
  }
  return os + "/" + arch;
}

ApiResult<std::optional<seconds>> check_timeout(const CreateRequest& r, const CreateRules& rules) {
  if (!r.timeout_seconds) return std::nullopt;
  int64_t timeout = *r.timeout_seconds;
  if (rules.max_timeout_seconds && timeout > *rules.max_timeout_seconds) {
    return refuse(invalid_parameter(
        "timeout",
        fmt::format("must be at most {} seconds, the maximum of this server", *rules.max_timeout_seconds)));
  }
  // Far beyond any use, and what the date format of the wire can show.
  constexpr int64_t kLatest = 253'402'300'799;  // the end of the year 9999
  int64_t now = std::chrono::duration_cast<seconds>(rules.now.time_since_epoch()).count();
  if (timeout > kLatest - now)
    return refuse(invalid_parameter("timeout", "the date of expiry would be after the year 9999"));
  return seconds(timeout);
}

ApiResult<> check_unbuilt_parts(const CreateRequest& r) {
  if (r.secure_access) return refuse(unsupported("secureAccess", std::string(kNotBuilt)));
  if (r.network_policy) return refuse(unsupported("networkPolicy", std::string(kNotBuilt)));
  if (r.credential_proxy.value_or(false))
    return refuse(unsupported("credentialProxy", std::string(kNotBuilt)));
  return {};
}

ApiResult<> check_env(std::vector<std::pair<std::string, std::string>>& env) {
  for (const auto& [key, value] : env) {
    if (key.empty()) return refuse(invalid_parameter("env", "a variable must have a name"));
    if (key.find('=') != key.npos || key.find('\0') != key.npos) {
      return refuse(invalid_parameter("env", fmt::format("the name '{}' must not contain '=' or NUL", key)));
    }
    if (!key.starts_with(kEgressPrefix)) continue;
    if (std::ranges::find(kEgressKeys, std::string_view(key).substr(kEgressPrefix.size())) ==
        kEgressKeys.end()) {
      return refuse(
          invalid_parameter("env", fmt::format("{} is not a setting that a request may make", key)));
    }
  }
  std::erase_if(env, [](const auto& pair) {
    return pair.first.starts_with(kEgressPrefix) && pair.first != "OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT";
  });
  return {};
}

}  // namespace

std::vector<std::string> words_of(std::vector<std::string> entrypoint) {
  if (!is_command_line(entrypoint)) return entrypoint;
  return shell_words(entrypoint.front()).value_or(entrypoint);
}

std::string_view host_arch() { return host_architecture(); }

ApiResult<CreatePlan> check_create(CreateRequest request, const CreateRules& rules) {
  TRY(check_extensions(request));
  TRY(check_unbuilt_sources(request));
  if (request.metadata) TRY(check_metadata(*request.metadata));
  CreatePlan plan;
  plan.read_only_root = TRY(wants_read_only_root(request));
  plan.platform = TRY(check_platform(request, rules));
  plan.timeout = TRY(check_timeout(request, rules));
  TRY(check_unbuilt_parts(request));
  plan.limits_text = std::move(*request.resource_limits);
  plan.limits = TRY(parse_limits(plan.limits_text));
  TRY(check_env(request.env));
  if (request.volumes && !request.volumes->empty())
    return refuse(unsupported("volumes", std::string(kNotBuilt)));
  plan.image = std::move(request.image);
  plan.entrypoint = std::move(*request.entrypoint);
  plan.env = std::move(request.env);
  plan.metadata = std::move(request.metadata);
  for (auto& [key, value] : request.extensions) {
    if (key.starts_with(kExtensionPrefix)) plan.extensions.emplace(key, std::move(value));
  }
  return plan;
}

}  // namespace osb::api
