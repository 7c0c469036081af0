#pragma once

// What a pool's template asks for, by the rules of creates. It is checked when the pool is made, and read
// again at every start: what the server cannot do any more is told in the pool's status.

#include "api/create_request.h"
#include "runtime/runtimes.h"
#include "sandbox/create_request.h"
#include "sandbox/failure.h"
#include "sandbox/pool.h"
#include "server/config.h"

namespace osb::server {

api::ApiResult<sandbox::CreateRequest> check_template(api::CreateBody body, const Config& config,
                                                      runtime::Runtimes& runtimes, WallTime now);
sandbox::Outcome<sandbox::CreateRequest> read_template(const std::string& text, const Config& config,
                                                       runtime::Runtimes& runtimes, WallTime now);

// The template that asks for this image and these limits, and nothing else.
std::string own_template(const std::string& image, const std::map<std::string, std::string>& limits);

}  // namespace osb::server
