#pragma once

// Messages of the Model Context Protocol: JSON-RPC 2.0, one object each. They come from programs that are not
// ours.

#include <expected>
#include <string>
#include <string_view>

#include "json/decode.h"

namespace osb::cli {

inline constexpr size_t kMaxMcpMessage = 16 << 20;

// The codes of JSON-RPC.
enum class McpCode {
  parse_error = -32700,
  invalid_request = -32600,
  unknown_method = -32601,
  invalid_params = -32602,
  busy = -32000,
};

struct McpMessage {
  enum class Kind { request, notification, answer };
  Kind kind = Kind::request;
  json::bj::value id = {};  // of requests and answers: a string or an integer
  std::string method = {};
  json::bj::object params = {};
};

// Why a message is none, and whom to tell: the id is null when none could be read.
struct McpFault {
  McpCode code = McpCode::invalid_request;
  std::string message;
  json::bj::value id = {};
};

std::expected<McpMessage, McpFault> read_mcp_message(std::string_view text);

std::string mcp_answer(const json::bj::value& id, json::bj::object result);
std::string mcp_failure(const McpFault& fault);
std::string mcp_notification(std::string_view method, json::bj::object params);

}  // namespace osb::cli
