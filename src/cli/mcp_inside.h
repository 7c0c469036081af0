#pragma once

// Tools of `osb mcp` that work inside a sandbox, by its execution daemon.

#include <string>

#include "cli/api.h"
#include "cli/mcp_arguments.h"

namespace osb::cli {

// command_*, code_run, metrics, health, endpoint
Task<Result<json::bj::value>> mcp_program_call(Api api, std::string id, std::string tool,
                                               McpArguments arguments);
// file_*
Task<Result<json::bj::value>> mcp_file_call(Api api, std::string id, std::string tool,
                                            McpArguments arguments);
// Returns when the snapshot is whole.
Task<Result<json::bj::value>> take_snapshot(Api& api, std::string target, std::string body);

}  // namespace osb::cli
