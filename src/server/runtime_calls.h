#pragma once

// The server's side of the runtime interface: requests become specs, failures become those of the domain,
// ends become states, and every call has a deadline.

#include "runtime/runtime.h"
#include "sandbox/create_request.h"
#include "sandbox/failure.h"

namespace osb::server {

runtime::SandboxSpec spec_of(const sandbox::Sandbox& row, const sandbox::CreateRequest& request);
std::optional<runtime::NetworkPolicy> network_of(const sandbox::CreateRequest& request);
runtime::Claim claim_of(const sandbox::Sandbox& row, sandbox::CreateRequest request);
sandbox::Failure to_failure(const runtime::CreateFailure& failure);
sandbox::Status status_of(const runtime::End& end, WallTime at);

// The first half of a creation; what the runtime says it cannot do is refused without asking it.
io::Task<runtime::Created<runtime::PreparedPtr>> prepare_in_time(runtime::Runtime& runtime,
                                                                 runtime::SandboxSpec spec);
io::Task<runtime::Created<std::string>> start_in_time(runtime::Runtime& runtime,
                                                      runtime::PreparedPtr prepared, runtime::Claim claim);
io::Task<runtime::Created<runtime::Warm>> warm_in_time(runtime::Runtime& runtime,
                                                       runtime::PreparedPtr prepared, std::string record);
// Also when nobody can tell any more.
io::Task<> wait_for_end(runtime::Runtime& runtime, std::string handle);
io::Task<Result<void>> destroy_in_time(runtime::Runtime& runtime, std::string handle);

}  // namespace osb::server
