#pragma once

// `osb sandbox create`: a sandbox from an image, a snapshot, a template or a file with the whole request.

#include <chrono>

#include "cli/server_command.h"

namespace osb::cli {

void add_sandbox_create(CommandTree& tree, CLI::App& below);

// Until the sandbox runs and answers. An error says why it will not, or that the time was up.
Task<Result<void>> await_ready(Api& api, std::string id, std::chrono::milliseconds limit);

}  // namespace osb::cli
