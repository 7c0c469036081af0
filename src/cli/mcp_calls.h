#pragma once

// The tools of `osb mcp`, carried out: each is one or a few requests to the server.
//
// Sandboxes that were made or connected here are known; tools that work inside a sandbox want it known, or
// connect_if_missing. Nothing is removed when the process ends: a sandbox lives until its time is up. One
// object, one thread; calls may run side by side.

#include <functional>
#include <map>
#include <string>

#include "cli/api.h"
#include "cli/mcp_arguments.h"

namespace osb::cli {

class McpCalls {
 public:
  // How far a call is, from 0 to 1.
  using Progress = std::function<void(double)>;

  explicit McpCalls(Connection to) : to_(std::move(to)) {}

  // What the tool gives: an object, or a list. Code::invalid_argument for wrong arguments; the message never
  // has them in it.
  Task<Result<json::bj::value>> call(std::string tool, json::bj::object arguments, Progress progress);

 private:
  using Value = json::bj::value;
  Task<Result<Value>> on_sandboxes(std::string tool, McpArguments arguments, Progress progress);
  Task<Result<Value>> on_snapshots(std::string tool, McpArguments arguments);

  Task<Result<Value>> create(McpArguments arguments, Progress progress);
  Task<Result<Value>> connect(std::string id, io::Duration limit, bool skip);
  Task<Result<Api>> known(std::string id, bool connect_if_missing);

  Connection to_;
  std::map<std::string, Api> known_;
};

// A sandbox of the server's answer, with the names that clients of the published MCP server know.
json::bj::value mcp_sandbox_info(const json::bj::value& sandbox);

}  // namespace osb::cli
