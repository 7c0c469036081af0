#pragma once

// Layers on their way here, several at once: a process for each, which tries again where the network fails,
// and goes on where it or an earlier one left off.

#include <functional>
#include <vector>

#include "registry/client.h"

namespace osb::registry {

// Each layer becomes a file in the directory, named by its digest; one that is there whole is not asked for
// again. Its bytes are not looked at here: who unpacks them checks their digest. Of several clients (mirrors,
// the registry itself) the next is asked for a layer that the one before it does not give.
Result<void> download_layers(std::vector<RepositoryClient>& clients,
                             const std::vector<Resolved::Layer>& layers, int directory,
                             const std::function<void(uint64_t bytes)>& told);

}  // namespace osb::registry
