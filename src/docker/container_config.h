#pragma once

// The body with which an engine is asked for a container: a pure function of what a sandbox is to be.

#include <map>
#include <string>
#include <vector>

#include "runtime/spec.h"

namespace osb::docker {

// Labels by which a container is found again. Nothing of a sandbox's id is among them.
inline constexpr char kOwnerLabel[] = "opensandbox.io/owner";
inline constexpr char kHandleLabel[] = "opensandbox.io/handle";

struct ContainerRules {
  std::string network_mode = "bridge";
  std::vector<std::string> drop_capabilities;
  std::string apparmor_profile;  // "": the engine's
  bool no_new_privileges = true;
};

// `boot`: the directory of the host that holds execd; see SandboxFiles.
std::string container_body(const runtime::SandboxSpec& spec, const std::string& image_id,
                           const std::string& owner, const std::string& boot, const ContainerRules& rules);

std::string container_name(const std::string& handle);

}  // namespace osb::docker
