#pragma once

// POST /sandboxes: the schema of the body. Mistakes in single fields are collected; rules between fields are
// checked in the contract's order once all fields are right by themselves. Both are 422. What this server can
// do with a well-formed request is create_rules.h.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/error.h"
#include "api/hooks.h"
#include "api/network_policy.h"
#include "api/volumes.h"
#include "sandbox/create_request.h"

namespace osb::api {

inline constexpr int64_t kMinTimeoutSeconds = 60;
// Which runtime shall have the sandbox, in the extensions of a request.
inline constexpr char kRuntimeExtension[] = "opensandbox.extensions.runtime";

struct Platform {
  std::string os, arch;
};

// What the body of a request says, of which a sandbox::CreateRequest is made.
struct CreateBody {
  std::string image;  // "" in the forms without one
  std::optional<sandbox::ImageAuth> image_auth;
  std::optional<std::string> snapshot_id, template_id;  // absent when blank
  std::optional<Platform> platform;
  std::optional<int64_t> timeout_seconds;  // absent: never expires
  std::optional<std::map<std::string, std::string>> resource_limits, resource_requests;
  std::vector<std::pair<std::string, std::string>> env;  // in key order; null entries are gone
  bool has_env = false;
  std::optional<sandbox::Metadata> metadata;
  std::optional<std::vector<std::string>> entrypoint;
  std::optional<NetworkPolicy> network_policy;
  std::optional<bool> credential_proxy;  // the member `enabled`, when credentialProxy is there
  bool secure_access = false;
  std::optional<std::vector<Volume>> volumes;
  std::optional<Hooks> hooks;
  std::map<std::string, std::string> extensions;

  std::string_view pool_ref() const;  // extensions.poolRef, trimmed; "" outside pool mode
  std::string_view runtime() const;   // the runtime it asks for; "": none in particular
};

ApiResult<CreateBody> decode_create(std::string_view content_type, std::string_view body);

// The template of a pool: the body of a create without what each claim says. Rules between fields are told in
// the issues as well.
CreateBody decode_template(const json::Field& field);

}  // namespace osb::api
