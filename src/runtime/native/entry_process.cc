#include "runtime/native/entry_process.h"

#include <algorithm>

#include "base/default_path.h"
#include "base/hooks_variable.h"

namespace osb::runtime {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

bool has(const Variables& environment, std::string_view key) {
  return std::ranges::any_of(environment, [&](const auto& pair) { return pair.first == key; });
}

void set(Variables& environment, std::string_view key, std::string value) {
  std::erase_if(environment, [&](const auto& pair) { return pair.first == key; });
  environment.emplace_back(key, std::move(value));
}

}  // namespace

EntryProcess entry_process(const Claim& claim, const Limits& limits, const image::ImageConfig& image) {
  EntryProcess entry;
  entry.arguments = claim.entrypoint;
  entry.cpu_millis = limits.cpu_millis;
  entry.memory_bytes = limits.memory_bytes;
  entry.uid = image.uid;
  entry.gid = image.gid;
  if (!image.workdir.empty()) entry.directory = image.workdir;
  Variables& env = entry.environment;
  env = image.env;
  std::erase_if(env, [](const auto& pair) { return pair.first == kHooksVariable; });
  for (const auto& [key, value] : claim.env) set(env, key, value);
  set(env, "OPENSANDBOX_ID", claim.id);
  if (!has(env, "EXECD_ENVS")) env.emplace_back("EXECD_ENVS", "/opt/opensandbox/.env");
  if (!has(env, "PATH")) env.emplace_back("PATH", kDefaultPath);
  bool root = image.uid == 0;
  if (!has(env, "HOME")) env.emplace_back("HOME", !image.home.empty() ? image.home : root ? "/root" : "/");
  if (!has(env, "USER")) {
    env.emplace_back("USER", !image.user_name.empty() ? image.user_name
                             : root                   ? "root"
                                                      : std::to_string(image.uid));
  }
  return entry;
}

}  // namespace osb::runtime
