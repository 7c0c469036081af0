#include "cli/mcp_message.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

constexpr size_t kMaxMethod = 200, kMaxId = 1000;

std::unexpected<McpFault> fault(McpCode code, std::string message, bj::value id = {}) {
  return std::unexpected(McpFault{code, std::move(message), std::move(id)});
}

bool is_id(const bj::value& value) {
  if (const auto* text = value.if_string()) return text->size() <= kMaxId;
  return value.is_int64() || value.is_uint64();
}

}  // namespace

std::expected<McpMessage, McpFault> read_mcp_message(std::string_view text) {
  if (text.size() > kMaxMcpMessage)
    return fault(McpCode::invalid_request, "the message is larger than 16 MiB");
  auto value = json::parse(text);
  if (!value) return fault(McpCode::parse_error, "the message is no JSON: " + value.error().message);
  auto* object = value->if_object();
  if (!object)
    return fault(McpCode::invalid_request, "a message is one JSON object; several are sent one by one");

  McpMessage message;
  const auto* id = object->if_contains("id");
  if (id && !is_id(*id))
    return fault(McpCode::invalid_request, "the id is neither a string of at most 1000 bytes nor an integer");
  if (id) message.id = *id;
  const auto* version = object->if_contains("jsonrpc");
  if (!version || *version != "2.0")
    return fault(McpCode::invalid_request, "\"jsonrpc\" is not \"2.0\"", message.id);

  const auto* method = object->if_contains("method");
  if (!method) {
    bool answers = object->contains("result") || object->contains("error");
    if (!answers || !id) return fault(McpCode::invalid_request, "there is no \"method\"", message.id);
    message.kind = McpMessage::Kind::answer;
    return message;
  }
  if (!method->is_string() || method->as_string().empty() || method->as_string().size() > kMaxMethod)
    return fault(McpCode::invalid_request, "the method is no name", message.id);
  message.kind = id ? McpMessage::Kind::request : McpMessage::Kind::notification;
  message.method = method->as_string();
  if (auto* params = object->if_contains("params"); params && !params->is_null()) {
    if (!params->is_object()) return fault(McpCode::invalid_params, "\"params\" is no object", message.id);
    message.params = std::move(params->as_object());
  }
  return message;
}

std::string mcp_answer(const bj::value& id, bj::object result) {
  return json::print(bj::object{{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
}

std::string mcp_failure(const McpFault& fault) {
  bj::object error{{"code", static_cast<int>(fault.code)}, {"message", fault.message}};
  return json::print(bj::object{{"jsonrpc", "2.0"}, {"id", fault.id}, {"error", std::move(error)}});
}

std::string mcp_notification(std::string_view method, bj::object params) {
  return json::print(bj::object{{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
}

}  // namespace osb::cli
