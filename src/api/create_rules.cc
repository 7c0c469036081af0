#include "api/create_rules.h"

#include <fmt/format.h>

#include <array>

#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "api/volume_rules.h"
#include "base/limit_bounds.h"
#include "base/machine.h"
#include "base/strings.h"
#include "sandbox/egress_target.h"
#include "sandbox/labels.h"

namespace osb::api {
namespace {

constexpr std::string_view kExtensionPrefix = "opensandbox.extensions.";
constexpr const char* kReadOnlyRoot = "opensandbox.extensions.read-only-root";
constexpr const char* kShmSize = sandbox::kShmExtension;
constexpr const char* kRestoreEnv = "restore.env";
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

ApiResult<bool> wants_environment(const CreateBody& r, const sandbox::CreateRequest& request) {
  auto found = r.extensions.find(kRestoreEnv);
  if (found == r.extensions.end()) return false;
  if (found->second != "true" && found->second != "false")
    return refuse(invalid_parameter("extensions." + std::string(kRestoreEnv), "must be true or false"));
  if (found->second == "true" && request.snapshot.empty())
    return refuse(invalid_parameter("extensions." + std::string(kRestoreEnv), "needs a snapshotId"));
  return found->second == "true";
}

ApiResult<std::optional<int64_t>> wanted_shm(const CreateBody& r) {
  using namespace limit_bounds;
  auto found = r.extensions.find(kShmSize);
  if (found == r.extensions.end()) return std::nullopt;
  auto bytes = parse_memory(found->second);
  if (bytes && *bytes >= kMinShmBytes && *bytes <= kMostShmBytes) return bytes;
  return refuse(invalid_parameter("extensions." + std::string(kShmSize),
                                  "must be a size from 64Ki to 1Ti, such as 512Mi or 2Gi"));
}

ApiResult<> check_pull_policy(const CreateBody& r) {
  auto found = r.extensions.find(sandbox::kPullPolicyExtension);
  if (found == r.extensions.end()) return {};
  for (std::string_view word : {"always", "if-not-present", "never"}) {
    if (found->second == word) return {};
  }
  return refuse(invalid_parameter("extensions." + std::string(sandbox::kPullPolicyExtension),
                                  "must be always, if-not-present or never"));
}

ApiResult<> check_idle_pause(const CreateBody& r, const CreateRules& rules) {
  auto found = r.extensions.find(sandbox::kIdleExtension);
  if (found == r.extensions.end()) return {};
  std::string field = "extensions." + std::string(sandbox::kIdleExtension);
  auto seconds = parse_number<int64_t>(trim(found->second));
  if (!seconds || *seconds < 1 || *seconds > 86400)
    return refuse(invalid_parameter(field, "must be a whole number from 1 to 86400"));
  if (!rules.no_pause.empty()) return refuse(unsupported(field, rules.no_pause));
  return {};
}

ApiResult<> check_extensions(const CreateBody& r, const CreateRules& rules) {
  TRY(check_pull_policy(r));
  TRY(check_idle_pause(r, rules));
  auto found = r.extensions.find(sandbox::kRenewExtension);
  if (found == r.extensions.end()) return {};
  auto seconds = parse_number<int64_t>(trim(found->second));
  if (!seconds || *seconds < 300 || *seconds > 86400) {
    return refuse(invalid_parameter("extensions.access.renew.extend.seconds",
                                    "must be a whole number from 300 to 86400"));
  }
  if (rules.renews_on_access) return {};
  // Who asks for it relies on it: a sandbox that ends in the middle of its work is worse than a refusal.
  ApiError error =
      unsupported("extensions.access.renew.extend.seconds",
                  "this server does not renew a sandbox because it is used; leave it out and give a "
                  "longer timeout");
  error.remedy =
      "leave extensions.access.renew.extend.seconds out of the request; give a longer timeout, renew with "
      "POST /sandboxes/{id}/renew-expiration, or set renew_intent.enabled of the server";
  return refuse(std::move(error));
}

ApiResult<> check_unbuilt_sources(const CreateBody& r) {
  if (r.template_id) return refuse(unsupported("templateId", std::string(kNotBuilt)));
  return {};
}

// A sandbox that is claimed from a pool has its shape already. Python clients always send an image and
// limits: those are ignored, and an event says so. What protects, or what somebody relies on, is not.
ApiResult<> check_claim(const CreateBody& r) {
  auto refused = [](bool present, std::string_view field) -> ApiResult<> {
    if (!present) return {};
    return refuse(invalid_parameter(
        field, "cannot be given together with extensions.poolRef: it is a matter of the pool's template"));
  };
  TRY(refused(r.network_policy.has_value(), "networkPolicy"));
  TRY(refused(r.credential_proxy.value_or(false), "credentialProxy"));
  TRY(refused(r.volumes && !r.volumes->empty(), "volumes"));
  TRY(refused(r.platform.has_value(), "platform"));
  for (const char* key : {kReadOnlyRoot, kShmSize, kRestoreEnv})
    TRY(refused(r.extensions.contains(key), "extensions." + std::string(key)));
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
  auto wanted = r.timeout_seconds ? r.timeout_seconds : rules.default_timeout_seconds;
  if (!wanted) return std::nullopt;
  int64_t timeout = *wanted;
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
  if (r.network_policy && !rules.no_network_policy.empty())
    return refuse(unsupported("networkPolicy", rules.no_network_policy));
  if (r.secure_access && !rules.no_secure_access.empty())
    return refuse(unsupported("secureAccess", rules.no_secure_access));
  if (r.credential_proxy.value_or(false))
    return refuse(unsupported("credentialProxy", std::string(kNotBuilt)));
  return {};
}

ApiResult<> check_env(std::vector<std::pair<std::string, std::string>>& env) {
  for (const auto& [key, value] : env) {
    if (key.empty()) return refuse(invalid_parameter("env", "a variable must have a name"));
    if (key.find('=') != key.npos || key.find('\0') != key.npos) {
      return refuse(invalid_parameter("env", "a name must not contain '=' or NUL"));
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

// allow, or deny, which is also what no word means.
ApiResult<bool> allows(const std::string& field, std::string_view action) {
  std::string word = to_lower(trim(action));
  if (word == "allow") return true;
  if (word == "deny" || word.empty()) return false;
  return refuse(invalid_parameter(field, "must be allow or deny"));
}

ApiResult<sandbox::NetworkPolicy> to_domain(const NetworkPolicy& policy) {
  constexpr size_t kMostRules = 4096;  // as the egress process takes
  sandbox::NetworkPolicy out;
  out.allow_the_rest = TRY(allows("networkPolicy.defaultAction", policy.default_action.value_or("")));
  if (policy.egress.size() > kMostRules)
    return refuse(
        invalid_parameter("networkPolicy.egress", fmt::format("must have at most {} rules", kMostRules)));
  for (size_t i = 0; i < policy.egress.size(); ++i) {
    const auto& [action, target] = policy.egress[i];
    std::string field = fmt::format("networkPolicy.egress[{}].", i);
    if (auto parsed = sandbox::parse_target(target); !parsed)
      return refuse(invalid_parameter(field + "target", parsed.error().message));
    out.egress.push_back(
        {.allow = TRY(allows(field + "action", action)), .target = std::string(trim(target))});
  }
  return out;
}

}  // namespace

std::string_view host_arch() { return host_architecture(); }

ApiResult<sandbox::CreateRequest> check_create(CreateBody body, const CreateRules& rules) {
  TRY(check_extensions(body, rules));
  TRY(check_unbuilt_sources(body));
  const bool is_claim = !body.pool_ref().empty();
  if (is_claim) TRY(check_claim(body));
  if (body.metadata) TRY(on_wire(sandbox::check_metadata(*body.metadata)));
  sandbox::CreateRequest request;
  request.read_only_root = TRY(wants_read_only_root(body));
  request.shm_bytes = TRY(wanted_shm(body));
  request.platform = TRY(check_platform(body, rules));
  request.timeout = TRY(check_timeout(body, rules));
  TRY(check_unbuilt_parts(body, rules));
  request.pool = body.pool_ref();
  if (body.resource_limits) request.limits_text = std::move(*body.resource_limits);
  // Of a claim nobody looks at them.
  if (!is_claim) request.limits = TRY(parse_limits(request.limits_text));
  if (request.limits.gpus && !rules.no_gpu.empty())
    return refuse(unsupported("resourceLimits.gpu", rules.no_gpu));
  TRY(check_env(body.env));
  if (body.volumes && !body.volumes->empty() && !rules.no_volumes.empty())
    return refuse(unsupported("volumes", rules.no_volumes));
  if (body.volumes) request.volumes = TRY(check_volumes(*body.volumes, rules.allowed_host_paths));
  if (body.hooks) request.hooks = TRY(check_hooks(*body.hooks));
  request.runtime = body.runtime();
  request.image_auth = std::move(body.image_auth);
  if (body.network_policy) request.network_policy = TRY(to_domain(*body.network_policy));
  request.image = std::move(body.image);
  if (!is_claim)
    request.snapshot = body.snapshot_id ? *body.snapshot_id : sandbox::snapshot_of_image(request.image);
  if (!request.snapshot.empty()) request.image = sandbox::image_of_snapshot(request.snapshot);
  request.restore_env = TRY(wants_environment(body, request));
  // What may be left out with a snapshot, or with a pool, which may have its own.
  if (body.entrypoint) request.entrypoint = std::move(*body.entrypoint);
  if (request.entrypoint.empty() && !is_claim) request.entrypoint = sandbox::idle_entrypoint();
  request.env = std::move(body.env);
  request.metadata = std::move(body.metadata);
  for (auto& [key, value] : body.extensions) {
    bool own = key == sandbox::kRenewExtension || key == sandbox::kIdleExtension;
    if (own) value = std::string(trim(value));
    if (own || key.starts_with(kExtensionPrefix)) request.extensions.emplace(key, std::move(value));
  }
  if (body.secure_access) request.extensions.emplace(sandbox::kSecuredExtension, "true");
  return request;
}

}  // namespace osb::api
