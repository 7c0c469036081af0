#pragma once

// What this server can do with a well-formed create request: rules of values (400), and parts that are not
// built yet, refused by name. Nothing that asks for protection is accepted and ignored.

#include "api/create_request.h"
#include "api/resource_limits.h"
#include "base/clock.h"

namespace osb::api {

struct CreateRules {
  std::optional<int64_t> max_timeout_seconds;
  std::string arch;  // of this host: amd64, arm64
  WallTime now;
};

// A request that passed: what the lifecycle needs to make a sandbox and to describe it.
struct CreatePlan {
  std::string image;
  std::vector<std::string> entrypoint;
  std::vector<std::pair<std::string, std::string>> env;
  ResourceLimits limits;
  std::map<std::string, std::string> limits_text;
  std::optional<Metadata> metadata;
  std::map<std::string, std::string> extensions;  // those that are given back
  std::string platform;                           // "linux/amd64", or ""
  std::optional<seconds> timeout;                 // absent: never expires
  bool read_only_root = false;
};

// What to execute: an entrypoint of one element with a blank in it is a command line, cut by a shell's rules
// of quoting. Clients of one family send all of theirs so.
std::vector<std::string> words_of(std::vector<std::string> entrypoint);

std::string_view host_arch();

ApiResult<CreatePlan> check_create(CreateRequest request, const CreateRules& rules);

}  // namespace osb::api
