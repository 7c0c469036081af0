#pragma once

// The configuration files that `init-config` writes: complete examples by name, and a skeleton with every key
// commented.

#include <optional>
#include <string_view>
#include <vector>

namespace osb::server {

// native, docker, docker-zh, k8s, k8s-zh.
std::vector<std::string_view> config_example_names();
std::optional<std::string_view> config_example(std::string_view name);
std::string_view config_skeleton();

}  // namespace osb::server
