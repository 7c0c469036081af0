#pragma once

// The configuration files that `init-config` writes: complete examples by name, and a skeleton with every key
// commented.

#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::server {

// native, docker, docker-zh, k8s, k8s-zh.
std::vector<std::string_view> config_example_names();
// By name; "" is the skeleton. An unknown name is an error that lists the known ones.
Result<std::string_view> config_example(std::string_view name);

}  // namespace osb::server
