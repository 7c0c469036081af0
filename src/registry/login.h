#pragma once

// A name and a password for a registry, and the file in which `docker login` keeps them.

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::registry {

struct Login {
  std::string username, password;
};

// By host, as references write it ("docker.io", "registry.example:5000"). Programs that keep passwords
// elsewhere (credsStore, credHelpers) are not asked: entries without a password are left out.
Result<std::map<std::string, Login>> parse_login_file(std::string_view text);

}  // namespace osb::registry
