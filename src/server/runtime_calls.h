#pragma once

// The server's side of the runtime interface: requests become specs, failures become API errors, ends become
// states, and every call has a deadline.

#include "api/create_rules.h"
#include "api/error.h"
#include "runtime/runtime.h"
#include "store/sandboxes.h"

namespace osb::server {

runtime::SandboxSpec spec_of(const store::Sandbox& row, api::CreatePlan plan);
api::ApiError to_api_error(const runtime::CreateFailure& failure);
store::Status status_of(const runtime::End& end, WallTime at);

io::Task<std::expected<std::string, runtime::CreateFailure>> create_in_time(runtime::Runtime& runtime,
                                                                            runtime::SandboxSpec spec);
io::Task<Result<void>> destroy_in_time(runtime::Runtime& runtime, std::string handle);

}  // namespace osb::server
