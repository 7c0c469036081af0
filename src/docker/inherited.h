#pragma once

// Containers that the original OpenSandbox server has made (docker.adopt): what their labels say. They have a
// label with their id and none of an owner, their name is sandbox-<id>, and their execd listens by TCP for
// everybody on their network.

#include <map>
#include <optional>
#include <string>

#include "docker/answers.h"
#include "docker/container_config.h"
#include "runtime/runtime.h"

namespace osb::docker {

// Of a sandbox, and of no service that says whose its containers are.
bool is_of_others(const std::map<std::string, std::string>& labels);
// What it is called here: its id, or, of an id that is no UUID, one that comes from it.
std::string handle_of(const std::string& id);

// Labels and variables that the container has from its image are nobody's.
runtime::Inherited inherited_from(const Container& container, const Image& of_image);
// The token of the sidecar that holds its network policy ("": it is not said). Nothing of one that has the
// engine's network.
std::optional<std::string> inherited_egress(const Container& container);
// Volumes that were made for it and go with it.
std::vector<std::string> inherited_volumes(const std::map<std::string, std::string>& labels);
// Its first process ends as its entry process does.
runtime::End inherited_end(const Container& container);

}  // namespace osb::docker
