#include <algorithm>

#include "api/failure_status.h"
#include "sandbox/failures.h"
#include "server/routes.h"

namespace osb::server {
namespace {

// Of its own platform: all of them are Linux.
std::string arch_of(const runtime::Capabilities& can) {
  const std::string own = can.platforms.empty() ? "" : can.platforms.front();
  return own.substr(own.find('/') + 1);
}

// The smaller of two bounds that may be missing.
std::optional<int64_t> most_timeout(const Config& config) {
  auto one = config.server.max_sandbox_timeout_seconds, other = config.sandbox.max_lifetime;
  if (!one || !other) return one ? one : other;
  return std::min(*one, *other);
}

}  // namespace

void choose_runtime(const Config& config, api::CreateBody& body) {
  if (body.image.empty() || !body.runtime().empty() || !body.pool_ref().empty()) return;
  std::string name = config.runtime_for(body.image);
  // The standard one is what nobody has to name.
  if (!name.empty() && name != config.standard_runtime()) body.extensions[api::kRuntimeExtension] = name;
}

api::ApiResult<api::CreateRules> create_rules(const Config& config, runtime::Runtimes& runtimes,
                                              std::string_view name, WallTime now) {
  runtime::Runtime* runtime = runtimes.find(name);
  if (!runtime) return api::refuse(api::to_api_error(sandbox::unknown_runtime(runtimes.names())));
  const auto& can = runtime->capabilities();
  return api::CreateRules{.max_timeout_seconds = most_timeout(config),
                          .default_timeout_seconds = config.sandbox.timeout_seconds,
                          .arch = arch_of(can),
                          .now = now,
                          .no_network_policy = can.network_policy ? "" : can.network_policy.why,
                          .no_secure_access = can.secure_access ? "" : can.secure_access.why,
                          .no_gpu = can.gpu ? "" : can.gpu.why,
                          .no_volumes = can.volumes ? "" : can.volumes.why,
                          .no_pause = can.pause ? "" : can.pause.why,
                          .allowed_host_paths = config.storage.allowed_host_paths,
                          .renews_on_access = config.renew.enabled};
}

}  // namespace osb::server
