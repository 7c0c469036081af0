#pragma once

// For unit tests: the runtime that makes nothing, as these tests call it.

#include "testkit/memory_runtime.h"

namespace osb::server {

using FakeRuntime = testkit::MemoryRuntime;

}  // namespace osb::server
