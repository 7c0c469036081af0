#include "cli/image_roles.h"

#include <cstdlib>

#include "base/log.h"
#include "cli/server_role.h"
#include "registry/fetcher.h"
#include "registry/keeper.h"
#include "server/config.h"

namespace osb::cli {
namespace {

registry::KeeperSettings settings_of(const server::Config& config, const ImageKeeperOptions& options) {
  const server::RegistrySection& section = config.registry;
  constexpr uint64_t kGigabyte = 1'000'000'000;
  registry::KeeperSettings settings{.state_dir = options.state_dir,
                                    .service_gid = options.service_gid,
                                    .default_registry = section.standard,
                                    .mirrors = section.mirrors};
  settings.ca_files = section.ca_files;
  settings.http.plain_hosts = {section.plain_hosts.begin(), section.plain_hosts.end()};
  settings.auth_file = section.auth_file;
  settings.directories = config.native.images;
  settings.disk_budget = static_cast<uint64_t>(section.disk_budget_gb) * kGigabyte;
  return settings;
}

}  // namespace

int run_image_keeper(const ImageKeeperOptions& options) {
  // The same text that the server gets, from the same hands; the server itself has no part in it.
  const char* text = ::getenv(kConfigVariable);
  const char* source = ::getenv(kConfigSourceVariable);
  auto config = server::parse_config(text ? text : "", source ? source : "", ::getenv);
  if (!config) {
    log::error(config.error().message);
    return 1;
  }
  log::set_level(log::level_from(config->log_level));
  return registry::run_keeper(registry::kKeeperChannelFd, settings_of(*config, options));
}

int run_image_fetcher() {
  return registry::run_fetcher(registry::kFetcherSocketFd, registry::kFetcherDirectoryFd);
}

}  // namespace osb::cli
