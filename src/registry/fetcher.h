#pragma once

// The process that speaks to registries. It has an id of nobody, no capability, a directory of its own for
// what it downloads, a socket to the keeper, and nothing else: whatever a registry sends can break no more
// than this.

#include "base/fd.h"

namespace osb::registry {

inline constexpr int kFetcherSocketFd = 3;
inline constexpr int kFetcherDirectoryFd = 4;
inline constexpr int kFetcherFirstFileFd = 5;  // what it may read and send: the packed layers of a push

// The whole life of it: takes an order, says what stands behind the name, downloads what is needed; or says
// what the registry has of an image, and sends the rest. An exit status.
int run_fetcher(int socket, int directory);

}  // namespace osb::registry
