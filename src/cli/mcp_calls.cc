#include "cli/mcp_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <cmath>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/mcp_arguments.h"
#include "cli/mcp_inside.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

constexpr size_t kMaxKnown = 10000;
constexpr double kMaxSeconds = 86400.0 * 365;

std::string sandbox_target(std::string_view id, std::string_view rest = "") {
  return fmt::format("/v1/sandboxes/{}{}", percent_encode(id), rest);
}

std::string snake(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c >= 'A' && c <= 'Z') out += '_';
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  return out;
}

// Names of members in snake case, except below those whose names are the user's.
bj::value in_snake_case(const bj::value& value) {
  if (const auto* list = value.if_array()) {
    bj::array out;
    for (const bj::value& one : *list) out.push_back(in_snake_case(one));
    return out;
  }
  const auto* object = value.if_object();
  if (!object) return value;
  bj::object out;
  for (const auto& [name, member] : *object) {
    bool theirs = name == "metadata" || name == "extensions" || name == "env" || name == "headers";
    out[snake(name)] = theirs ? member : in_snake_case(member);
  }
  return out;
}

std::chrono::milliseconds seconds_of(json::Field field, double otherwise) {
  double seconds = number_of(field).value_or(otherwise);
  return std::chrono::milliseconds(static_cast<int64_t>(std::clamp(seconds, 0.0, kMaxSeconds) * 1000));
}

bj::value as_is(json::Field field) { return field.raw() ? *field.raw() : bj::value(); }

// The body of a create; members that are absent stay absent.
bj::object create_body(McpArguments arguments) {
  bj::object image{{"uri", arguments["image"].required_string()}};
  auto username = arguments["auth_username"].string(), password = arguments["auth_password"].string();
  if (username.has_value() != password.has_value())
    arguments.root.complain("value_error", "auth_username and auth_password come together or not at all");
  if (username && password) image["auth"] = bj::object{{"username", *username}, {"password", *password}};
  auto life = std::chrono::duration_cast<std::chrono::seconds>(seconds_of(arguments["timeout_seconds"], 600));
  bj::object body{{"image", std::move(image)},
                  {"timeout", life.count()},
                  {"entrypoint", bj::array{"tail", "-f", "/dev/null"}},
                  {"resourceLimits", bj::object{}}};
  if (arguments["entrypoint"].present()) body["entrypoint"] = as_is(arguments["entrypoint"]);
  if (arguments["resource"].present()) body["resourceLimits"] = as_is(arguments["resource"]);
  if (arguments["network_policy"].present()) body["networkPolicy"] = as_is(arguments["network_policy"]);
  for (const char* name : {"env", "metadata", "extensions"})
    if (arguments[name].present()) body[name] = as_is(arguments[name]);
  return body;
}

// Returns when commands can run in it.
Task<Result<void>> until_running(Api& api, std::string id) {
  for (;;) {
    bj::value sandbox = CO_TRY(co_await api.get(id));
    json::Issues ignored;
    auto status = json::Field::root(sandbox, ignored, "sandbox")["status"];
    std::string state = status["state"].string().value_or("");
    if (state == "Running") co_return Result<void>();
    if (state != "Pending" && state != "Resuming")
      co_return fail(Code::wrong_state, fmt::format("the sandbox is {}: {}", state,
                                                    status["message"].string().value_or("no reason given")));
    co_await io::sleep_for(std::chrono::milliseconds(100));
  }
}

std::string list_query(json::Field filter) {
  std::string query = fmt::format("?page={}&pageSize={}", filter["page"].integer().value_or(1),
                                  filter["page_size"].integer().value_or(20));
  for (const std::string& state : filter["states"].string_list().value_or(std::vector<std::string>{}))
    query += "&state=" + percent_encode(state);
  std::string wanted;
  for (const auto& [name, value] :
       filter["metadata"].string_map().value_or(std::map<std::string, std::string>{}))
    wanted += (wanted.empty() ? "" : "&") + percent_encode(name) + "=" + percent_encode(value);
  if (!wanted.empty()) query += "&metadata=" + percent_encode(wanted);
  return query;
}

}  // namespace

bj::value mcp_sandbox_info(const bj::value& sandbox) {
  bj::value out = in_snake_case(sandbox);
  auto* object = out.if_object();
  auto* image = object ? object->if_contains("image") : nullptr;
  if (auto* spec = image ? image->if_object() : nullptr; spec && spec->contains("uri")) {
    (*spec)["image"] = spec->at("uri");
    spec->erase("uri");
  }
  return out;
}

Task<Result<bj::value>> McpCalls::connect(std::string id, io::Duration limit, bool skip) {
  Api api(to_);
  bj::value info = CO_TRY(co_await api.get(id));
  CO_TRY(co_await api.unlock(id));
  if (!skip) CO_TRY(co_await io::with_deadline(limit, "wait for the sandbox", until_running(api, id)));
  if (known_.size() >= kMaxKnown) known_.erase(known_.begin());
  known_.insert_or_assign(id, std::move(api));
  co_return bj::object{{"sandbox_id", id}, {"info", mcp_sandbox_info(info)}};
}

Task<Result<bj::value>> McpCalls::create(McpArguments arguments, Progress progress) {
  bj::object body = create_body(arguments);
  auto limit = seconds_of(arguments["ready_timeout_seconds"], 30);
  bool skip = arguments["skip_health_check"].boolean().value_or(false);
  CO_TRY(arguments.ok());
  progress(0.1);
  Api api(to_);
  auto made = CO_TRY(co_await api.ask("POST", "/v1/sandboxes", json::print(body)));
  if (!made.is_object()) co_return fail(Code::corrupt, "the answer is no object");
  std::string id = CO_TRY(text_of(made.as_object(), "id"));
  progress(0.3);
  auto connected = co_await connect(id, limit, skip);
  if (!connected) {
    (void)co_await api.remove(id);  // nobody would know its id
    co_return std::unexpected(std::move(connected.error()));
  }
  progress(0.8);
  bj::value info = CO_TRY(co_await api.get(id));
  progress(1);
  co_return bj::object{{"sandbox_id", id}, {"info", mcp_sandbox_info(info)}};
}

Task<Result<Api>> McpCalls::known(std::string id, bool connect_if_missing) {
  if (auto found = known_.find(id); found != known_.end()) co_return found->second;
  if (!connect_if_missing)
    co_return fail(Code::not_found,
                   "this sandbox was not made or connected here\n  remedy: call sandbox_connect first, or "
                   "give connect_if_missing: true");
  CO_TRY(co_await connect(id, std::chrono::seconds(30), false));
  co_return known_.at(id);
}

Task<Result<bj::value>> McpCalls::on_sandboxes(std::string tool, McpArguments arguments, Progress progress) {
  Api api(to_);
  if (tool == "sandbox_create") co_return co_await create(arguments, progress);
  if (tool == "sandbox_list") {
    std::string query = list_query(arguments["filter"]);
    CO_TRY(arguments.ok());
    progress(0.1);
    auto answer = CO_TRY(co_await api.ask("GET", "/v1/sandboxes" + query));
    auto* list = answer.is_object() ? answer.as_object().if_contains("items") : nullptr;
    if (!list || !list->is_array()) co_return fail(Code::corrupt, "the list has no items");
    bj::array infos;
    for (const bj::value& one : list->as_array()) infos.push_back(mcp_sandbox_info(one));
    auto* pages = answer.as_object().if_contains("pagination");
    progress(1);
    co_return bj::object{{"sandbox_infos", std::move(infos)},
                         {"pagination", pages ? in_snake_case(*pages) : bj::value()}};
  }
  std::string id = arguments["sandbox_id"].required_string();
  if (tool == "sandbox_connect") {
    auto limit = seconds_of(arguments["connect_timeout_seconds"], 30);
    bool skip = arguments["skip_health_check"].boolean().value_or(false);
    CO_TRY(arguments.ok());
    co_return co_await connect(id, limit, skip);
  }
  if (tool == "sandbox_renew") {
    if (!arguments["timeout_seconds"].present())
      arguments["timeout_seconds"].complain("missing", "Field required");
    auto life = seconds_of(arguments["timeout_seconds"], 0);
    CO_TRY(arguments.ok());
    std::string until = format_api_time(wall_now() + life);
    auto answer = CO_TRY(co_await api.ask("POST", sandbox_target(id, "/renew-expiration"),
                                          json::print(bj::object{{"expiresAt", until}})));
    co_return in_snake_case(answer);
  }
  CO_TRY(arguments.ok());
  if (tool == "sandbox_kill") {
    known_.erase(id);
    CO_TRY(co_await api.remove(id));
    co_return bj::object{{"status", "killed"}};
  }
  if (tool == "sandbox_pause" || tool == "sandbox_resume") {
    bool pause = tool == "sandbox_pause";
    CO_TRY(co_await api.ask("POST", sandbox_target(id, pause ? "/pause" : "/resume")));
    co_return bj::object{{"status", pause ? "pausing" : "resuming"}};
  }
  bj::value info = CO_TRY(co_await api.get(id));
  co_return mcp_sandbox_info(info);
}

Task<Result<bj::value>> McpCalls::on_snapshots(std::string tool, McpArguments arguments) {
  Api api(to_);
  if (tool == "snapshot_list")
    co_return in_snake_case(CO_TRY(co_await api.ask("GET", "/v1/snapshots?pageSize=200")));
  if (tool == "snapshot_delete") {
    std::string snapshot = arguments["snapshot_id"].required_string();
    CO_TRY(arguments.ok());
    CO_TRY(co_await api.ask("DELETE", "/v1/snapshots/" + percent_encode(snapshot)));
    co_return bj::object{{"status", "deleted"}};
  }
  std::string id = arguments["sandbox_id"].required_string();
  if (tool == "network_policy_set") {
    if (!arguments["network_policy"].present())
      arguments["network_policy"].complain("missing", "Field required");
    CO_TRY(arguments.ok());
    co_return CO_TRY(co_await api.ask("PUT", sandbox_target(id, "/networkpolicy"),
                                      json::print(as_is(arguments["network_policy"]))));
  }
  if (tool == "sandbox_fork") {
    int64_t count = arguments["count"].integer().value_or(1);
    CO_TRY(arguments.ok());
    auto answer = CO_TRY(
        co_await api.ask("POST", sandbox_target(id, "/fork"), json::print(bj::object{{"count", count}})));
    co_return in_snake_case(answer);
  }
  if (tool == "sandbox_rollback") {
    bj::object body{{"snapshotId", arguments["snapshot_id"].required_string()}};
    CO_TRY(arguments.ok());
    co_return mcp_sandbox_info(
        CO_TRY(co_await api.ask("POST", sandbox_target(id, "/rollback"), json::print(body))));
  }
  if (tool == "snapshot_create") {
    bj::object body;
    if (auto name = arguments["name"].string()) body["name"] = *name;
    CO_TRY(arguments.ok());
    co_return co_await take_snapshot(api, sandbox_target(id, "/snapshots"), json::print(body));
  }
  CO_TRY(arguments.ok());
  std::string what = tool == "sandbox_diff" ? "/diff" : "/networkpolicy";
  co_return CO_TRY(co_await api.ask("GET", sandbox_target(id, what)));
}

Task<Result<bj::value>> McpCalls::call(std::string tool, bj::object given, Progress progress) {
  bj::value value = std::move(given);
  json::Issues issues;
  McpArguments arguments{json::Field::root(value, issues, "arguments"), issues};
  static constexpr std::string_view kInside[] = {"sandbox_get_metrics", "sandbox_healthcheck",
                                                 "sandbox_get_endpoint"};
  bool inside = std::ranges::find(kInside, tool) != std::end(kInside) || tool.starts_with("command_") ||
                tool.starts_with("file_") || tool.starts_with("code_");
  if (inside) {
    std::string id = arguments["sandbox_id"].required_string();
    bool missing = arguments["connect_if_missing"].boolean().value_or(false);
    CO_TRY(arguments.ok());
    Api api = CO_TRY(co_await known(id, missing));
    auto result = tool.starts_with("file_") ? co_await mcp_file_call(std::move(api), id, tool, arguments)
                                            : co_await mcp_program_call(std::move(api), id, tool, arguments);
    co_return result;
  }
  static constexpr std::string_view kOthers[] = {"sandbox_fork", "sandbox_rollback", "sandbox_diff"};
  bool other = std::ranges::find(kOthers, tool) != std::end(kOthers) || !tool.starts_with("sandbox_");
  if (other) co_return co_await on_snapshots(tool, arguments);
  co_return co_await on_sandboxes(tool, arguments, std::move(progress));
}

}  // namespace osb::cli
