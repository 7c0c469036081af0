#pragma once

// Who keeps the images of a runtime's sandboxes: this server, or an engine that everybody uses by its own
// client.

#include "api/error.h"
#include "runtime/image_library.h"
#include "runtime/runtime.h"

namespace osb::server {

// Refused, with whose they are, where it is not this server.
api::ApiResult<runtime::ImageLibrary*> library_of(runtime::Runtime& runtime);

// The sentence of that refusal.
std::string kept_elsewhere(const runtime::Runtime& runtime);

}  // namespace osb::server
