#pragma once

// What `osb mcp` answers to a message, whatever carries it. Requests may run side by side; a client can
// cancel its own.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cli/mcp_calls.h"
#include "cli/mcp_message.h"

namespace osb::cli {

class McpSession {
 public:
  // Takes messages that are no answers, as text; null where the transport has no way for them.
  using Notify = std::function<void(std::string message)>;

  McpSession(io::Executor executor, Connection to) : executor_(std::move(executor)), calls_(std::move(to)) {}

  // The answer, or nothing: notifications have none, nor have cancelled requests.
  Task<std::optional<std::string>> handle(std::string text, Notify notify);

 private:
  Task<std::optional<std::string>> on_request(McpMessage message, Notify notify);
  Task<std::optional<std::string>> call_tool(McpMessage message, Notify notify);
  void cancel(const json::bj::object& params);

  io::Executor executor_;
  McpCalls calls_;
  size_t running_count_ = 0;
  std::map<std::string, std::shared_ptr<io::Event>> running_;  // by the printed id; set: cancelled
};

}  // namespace osb::cli
