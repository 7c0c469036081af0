#include "execd/core.h"

#include <unistd.h>

#include "base/default_path.h"
#include "execd/env_file.h"
#include "execd/users.h"

namespace osb::execd {

Environment Core::command_env() const {
  Environment merged = env;
  merged.merge(read_env_file(env_file, env));
  return merged;
}

void add_defaults(Environment& env) {
  env.set_default("PATH", std::string(kDefaultPath));
  env.set_default("EXECD_ENVS", "/opt/opensandbox/.env");
  if (!env.find("HOME") || !env.find("USER")) {
    Users users = Users::load();
    const User* self = users.find(::getuid());
    env.set_default("HOME", self && !self->home.empty() ? self->home : ::getuid() == 0 ? "/root" : "/");
    env.set_default("USER", users.user_name(::getuid()));
  }
}

}  // namespace osb::execd
