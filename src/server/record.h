#pragma once

// A sandbox's row as the runtime keeps it beside the sandbox: should the database be lost, cut or rolled
// back, the row is made again from this, and what runs goes on.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sandbox/pool.h"
#include "sandbox/sandbox.h"
#include "sandbox/volume.h"

namespace osb::server {

using Environment = std::vector<std::pair<std::string, std::string>>;

// Everything but state and identity, which the runtime knows. Long parts are left out when it would be too
// long. The environment is in no row: only here are its values kept, with the sandbox's own files, for
// whoever makes another sandbox from it.
// Neither are its volumes, nor its hooks (CreateRequest::hooks; nothing: there were some, too long to keep).
std::string to_record(const sandbox::Sandbox& row, const std::optional<Environment>& env = {},
                      const std::vector<sandbox::Volume>& volumes = {},
                      const std::optional<std::string>& hooks = std::string());
// Code::corrupt for anything else.
Result<sandbox::Sandbox> from_record(std::string_view record);
// Of one that waits in a pool: it is nobody's, and without its row it is not needed.
std::string waiting_record(const sandbox::PoolMember& member);
bool is_waiting_record(std::string_view record);
// Nothing when it was not kept.
std::optional<Environment> environment_of(std::string_view record);
// The same with the network policy of a snapshot, in the text of kept_policy.h ("": none). As it was when it
// would become too long, or is no record.
std::string with_network(std::string record, const std::string& network);
// Nothing when it was not kept.
std::optional<std::string> kept_network_of(std::string_view record);
// Code::corrupt when they cannot be read.
Result<std::vector<sandbox::Volume>> volumes_of(std::string_view record);
// "" when it has none, as have records of builds that did not keep them. Nothing when they were too long.
std::optional<std::string> hooks_of(std::string_view record);

}  // namespace osb::server
