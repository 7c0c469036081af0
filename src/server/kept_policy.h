#pragma once

// The network policy that a snapshot keeps: what is made from it reaches no more than its sandbox did, unless
// the request names a policy of its own.

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "runtime/spec.h"
#include "sandbox/create_request.h"

namespace osb::server {

sandbox::NetworkPolicy to_request(runtime::NetworkPolicy policy);

// What counts when nobody knows what a sandbox could reach.
std::string text_of_deny();
// "" for none.
std::string to_text(const std::optional<runtime::NetworkPolicy>& policy);
// Of a text that is not empty. Code::corrupt for anything else: nothing is opened by a mistake.
Result<sandbox::NetworkPolicy> policy_from(std::string_view text);

}  // namespace osb::server
