#include "api/create_rules.h"

#include <fmt/format.h>

#include <array>

#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "base/machine.h"
#include "base/strings.h"
#include "sandbox/labels.h"

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
ApiResult<bool> wants_read_only_root(const CreateBody& r) {
  auto found = r.extensions.find(kReadOnlyRoot);
  if (found == r.extensions.end()) return false;
  if (found->second == "true" || found->second == "false") return found->second == "true";
  return refuse(invalid_parameter("extensions." + std::string(kReadOnlyRoot), "must be true or false"));
}

ApiResult<> check_extensions(const CreateBody& r) {
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

ApiResult<> check_unbuilt_sources(const CreateBody& r) {
  if (r.snapshot_id) return refuse(unsupported("snapshotId", std::string(kNotBuilt)));
  if (r.template_id) return refuse(unsupported("templateId", std::string(kNotBuilt)));
  if (r.hooks) return refuse(unsupported("lifecycle", std::string(kNotBuilt)));
  if (!r.pool_ref().empty()) return refuse(unsupported("extensions.poolRef", std::string(kNotBuilt)));
  return {};
}

ApiResult<std::string> check_platform(const CreateBody& r, const CreateRules& rules) {
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

ApiResult<std::optional<seconds>> check_timeout(const CreateBody& r, const CreateRules& rules) {
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

ApiResult<> check_unbuilt_parts(const CreateBody& r, const CreateRules& rules) {
  if (r.secure_access) return refuse(unsupported("secureAccess", std::string(kNotBuilt)));
  if (r.network_policy && !rules.no_network_policy.empty())
    return refuse(unsupported("networkPolicy", rules.no_network_policy));
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

sandbox::Volume to_domain(const Volume& volume) {
  using From = Volume::Backend;
  using To = sandbox::Volume::Backend;
  return {.backend = volume.backend == From::host    ? To::host
                     : volume.backend == From::claim ? To::claim
                                                     : To::object_store,
          .source = volume.source,
          .mount_path = volume.mount_path,
          .sub_path = volume.sub_path,
          .read_only = volume.read_only};
}

sandbox::NetworkPolicy to_domain(const NetworkPolicy& policy) {
  sandbox::NetworkPolicy out{.allow_the_rest = policy.default_action == "allow"};
  for (const auto& [action, target] : policy.egress)
    out.egress.push_back({.allow = action == "allow", .target = target});
  return out;
}

}  // namespace

std::string_view host_arch() { return host_architecture(); }

ApiResult<sandbox::CreateRequest> check_create(CreateBody body, const CreateRules& rules) {
  TRY(check_extensions(body));
  TRY(check_unbuilt_sources(body));
  if (body.metadata) TRY(on_wire(sandbox::check_metadata(*body.metadata)));
  sandbox::CreateRequest request;
  request.read_only_root = TRY(wants_read_only_root(body));
  request.platform = TRY(check_platform(body, rules));
  request.timeout = TRY(check_timeout(body, rules));
  TRY(check_unbuilt_parts(body, rules));
  request.limits_text = std::move(*body.resource_limits);
  request.limits = TRY(parse_limits(request.limits_text));
  TRY(check_env(body.env));
  if (body.volumes && !body.volumes->empty() && !rules.no_volumes.empty())
    return refuse(unsupported("volumes", rules.no_volumes));
  request.runtime = body.runtime();
  request.image_auth = std::move(body.image_auth);
  if (body.network_policy) request.network_policy = to_domain(*body.network_policy);
  if (body.volumes) {
    for (const Volume& volume : *body.volumes) request.volumes.push_back(to_domain(volume));
  }
  request.image = std::move(body.image);
  request.entrypoint = std::move(*body.entrypoint);
  request.env = std::move(body.env);
  request.metadata = std::move(body.metadata);
  for (auto& [key, value] : body.extensions) {
    if (key.starts_with(kExtensionPrefix)) request.extensions.emplace(key, std::move(value));
  }
  return request;
}

}  // namespace osb::api
