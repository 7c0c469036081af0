#pragma once

// The fetcher's part of a push (fetcher.h): asks what the registry has, sends what it lacks.

#include "registry/fetch_messages.h"

namespace osb::registry {

Result<void> push(FrameSocket& keeper, HttpClient& http, const FetchOrder& order);

}  // namespace osb::registry
