#pragma once

// The HTTP interface of a sandbox's egress: what its endpoint of port 18080 answers. Success is JSON, failure
// one line of text, because that is what the published clients show. Who may ask is decided before, by the
// server.

#include <functional>

#include "egress/attachment.h"
#include "http/server.h"

namespace osb::egress {

// Puts a policy in force and keeps it; nothing has changed when it fails.
using ChangePolicy = std::function<Result<void>(Policy)>;

http::Handler policy_routes(Attachment& attachment, ChangePolicy change, size_t most_rules = kMostRules);

}  // namespace osb::egress
