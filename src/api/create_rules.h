#pragma once

// What this server can do with a well-formed create request: rules of values (400), and parts that are not
// built yet, refused by name. Nothing that asks for protection is accepted and ignored.

#include "api/create_request.h"
#include "api/resource_limits.h"
#include "base/clock.h"
#include "sandbox/create_request.h"

namespace osb::api {

// Those that begin with no_ are what the runtime that was chosen says about itself: "" when it can, else why
// it cannot.
struct CreateRules {
  std::optional<int64_t> max_timeout_seconds;
  std::optional<int64_t> default_timeout_seconds;  // of a request that names none; nothing: it never expires
  std::string arch;                                // that the runtime runs: amd64, arm64
  WallTime now;
  std::string no_network_policy = "this server does not have this part yet";
  std::string no_secure_access = {};
  std::string no_gpu = "this server does not have this part yet";
  std::string no_volumes = "this server does not have this part yet";
  std::string no_pause = "this server does not have this part yet";
  std::vector<std::string> allowed_host_paths = {};
  bool renews_on_access = false;
};

std::string_view host_arch();

ApiResult<sandbox::CreateRequest> check_create(CreateBody body, const CreateRules& rules);

}  // namespace osb::api
