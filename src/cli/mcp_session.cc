#include "cli/mcp_session.h"

#include <algorithm>
#include <boost/json/object.hpp>

#include "cli/mcp_tools.h"
#include "cli/scratch_sandbox.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

constexpr size_t kMaxRunning = 64;
// The newest first: what a client gets that speaks another one.
constexpr std::string_view kProtocols[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
constexpr const char* kInstructions =
    "Tools for isolated Linux sandboxes. sandbox_create gives a sandbox_id, which all other tools need; "
    "command_run and code_run execute in it, file_read and file_write move text. Files, processes and "
    "network of a sandbox are its own. sandbox_kill removes it; without that it ends when its time is up, "
    "and sandbox_renew gives it more. snapshot_create and sandbox_fork keep or copy its files before "
    "something risky.";

bj::object welcome(const bj::object& params) {
  std::string_view chosen = kProtocols[0];
  const auto* wanted = params.if_contains("protocolVersion");
  for (std::string_view known : kProtocols)
    if (wanted && wanted->is_string() && wanted->as_string() == known) chosen = known;
  return {{"protocolVersion", chosen},
          {"capabilities", bj::object{{"tools", bj::object{{"listChanged", false}}}}},
          {"serverInfo", bj::object{{"name", "OpenSandbox Sandbox"}, {"version", OSB_VERSION}}},
          {"instructions", kInstructions}};
}

// As text for models, and as it is for programs. A list is a member "result", because it has to be an object.
bj::object tool_result(bj::value value) {
  if (value.is_array()) value = bj::object{{"result", std::move(value)}};
  bj::array content{bj::object{{"type", "text"}, {"text", json::print(value)}}};
  return {{"content", std::move(content)}, {"structuredContent", std::move(value)}, {"isError", false}};
}

bj::object tool_error(const Error& error) {
  bj::array content{bj::object{{"type", "text"}, {"text", error.message}}};
  return {{"content", std::move(content)}, {"isError", true}};
}

McpCalls::Progress progress_of(const bj::object& params, const McpSession::Notify& notify) {
  const auto* meta = params.if_contains("_meta");
  const auto* token = meta && meta->is_object() ? meta->as_object().if_contains("progressToken") : nullptr;
  if (!notify || !token || !(token->is_string() || token->is_int64() || token->is_uint64()))
    return [](double) {};
  return [token = *token, notify](double done) {
    notify(mcp_notification("notifications/progress",
                            {{"progressToken", token}, {"progress", done}, {"total", 1}}));
  };
}

}  // namespace

void McpSession::cancel(const bj::object& params) {
  const auto* id = params.if_contains("requestId");
  if (!id) return;
  if (auto found = running_.find(json::print(*id)); found != running_.end()) found->second->set();
}

Task<std::optional<std::string>> McpSession::call_tool(McpMessage message, Notify notify) {
  const auto* name = message.params.if_contains("name");
  if (!name || !name->is_string() || !is_mcp_tool(name->as_string()))
    co_return mcp_failure(
        {McpCode::invalid_params, "there is no such tool; tools/list has them", message.id});
  bj::object arguments;
  if (auto* given = message.params.if_contains("arguments"); given && given->is_object())
    arguments = given->as_object();
  std::string key = json::print(message.id);
  if (running_count_ >= kMaxRunning)
    co_return mcp_failure({McpCode::busy, "64 calls run already; wait for one of them", message.id});

  auto cancelled = std::make_shared<io::Event>(executor_);
  running_.insert_or_assign(key, cancelled);
  ++running_count_;
  std::shared_ptr<void> leave(nullptr, [this, key, cancelled](void*) {
    --running_count_;
    if (auto own = running_.find(key); own != running_.end() && own->second == cancelled) running_.erase(own);
  });
  std::optional<Result<bj::value>> result;
  auto call =
      calls_.call(std::string(name->as_string()), std::move(arguments), progress_of(message.params, notify));
  if (co_await io::race(store(&result, std::move(call)), cancelled->wait()) == 1) co_return std::nullopt;
  co_return mcp_answer(message.id, *result ? tool_result(std::move(**result)) : tool_error(result->error()));
}

Task<std::optional<std::string>> McpSession::on_request(McpMessage message, Notify notify) {
  if (message.method == "tools/call") co_return co_await call_tool(std::move(message), std::move(notify));
  if (message.method == "initialize") co_return mcp_answer(message.id, welcome(message.params));
  if (message.method == "ping") co_return mcp_answer(message.id, {});
  if (message.method == "tools/list") co_return mcp_answer(message.id, {{"tools", mcp_tools()}});
  co_return mcp_failure({McpCode::unknown_method,
                         "this server has tools only: initialize, ping, tools/list, tools/call", message.id});
}

Task<std::optional<std::string>> McpSession::handle(std::string text, Notify notify) {
  auto message = read_mcp_message(text);
  if (!message) co_return mcp_failure(message.error());
  if (message->kind == McpMessage::Kind::request)
    co_return co_await on_request(std::move(*message), std::move(notify));
  if (message->method == "notifications/cancelled") cancel(message->params);
  co_return std::nullopt;
}

}  // namespace osb::cli
