// `osb sandbox`: the life of sandboxes, in the published client's words. `osb sandbox create` is in
// sandbox_create.cc.

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/sandbox_create.h"
#include "cli/server_command.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using namespace std::chrono_literals;

constexpr const char* kStates[] = {"Failed",  "Paused",   "Pausing",    "Pending",
                                   "Running", "Stopping", "Terminated", "Unknown"};

// The members of a table's row, of one sandbox.
bj::object row_of(const bj::object& info) {
  bj::object row = info;
  if (const auto* status = info.at("status").if_object()) row["status"] = status->at("state");
  if (const auto* image = info.at("image").if_object()) row["image"] = image->at("image");
  return row;
}

struct List : ServerCommand {
  std::vector<std::string> states, metadata;
  int64_t page = 0, page_size = 0;

  void options(CLI::App& app) override {
    repeatable(app.add_option("-s,--state", states, "only those in this state; repeatable"));
    repeatable(app.add_option("-m,--metadata", metadata, "only those with this KEY=VALUE; repeatable"));
    app.add_option("--page", page, "which page, from 1")->check(CLI::PositiveNumber);
    app.add_option("--page-size", page_size, "how many on one")->check(CLI::PositiveNumber);
    output.options(app);
  }
  Result<std::string> query() const {
    std::string out;
    auto add = [&](std::string_view name, std::string_view value) {
      out += fmt::format("{}{}={}", out.empty() ? "?" : "&", name, percent_encode(value));
    };
    for (const std::string& state : states) {
      auto known = std::ranges::find_if(kStates, [&](const char* one) { return iequals(one, state); });
      if (known == std::end(kStates))
        return fail(Code::invalid_argument,
                    fmt::format("there is no such state; the states are {}", fmt::join(kStates, ", ")));
      add("state", *known);
    }
    std::string pairs;
    for (const auto& [name, value] : TRY(key_values(metadata, "--metadata")))
      pairs += fmt::format("{}{}={}", pairs.empty() ? "" : "&", percent_encode(std::string_view(name)),
                           percent_encode(std::string_view(value.as_string())));
    if (!pairs.empty()) add("metadata", pairs);
    if (page > 0) add("page", std::to_string(page));
    if (page_size > 0) add("pageSize", std::to_string(page_size));
    return out;
  }
  Task<Result<int>> run(Api& api) override {
    auto answer = CO_TRY(co_await api.ask("GET", "/v1/sandboxes" + CO_TRY(query())));
    const auto* object = answer.if_object();
    const auto* found = object ? object->if_contains("items") : nullptr;
    if (!found || !found->is_array()) co_return fail(Code::corrupt, "the answer has no \"items\"");
    bj::array items, rows;
    for (const bj::value& one : found->as_array()) {
      if (!one.is_object()) continue;
      rows.push_back(row_of(items.emplace_back(sandbox_info(one.as_object())).as_object()));
    }
    const auto* pages = object->if_contains("pagination");
    bj::object whole{{"items", std::move(items)},
                     {"pagination", pages ? in_snake_case(*pages) : bj::value()}};
    output.rows("Sandboxes", {"id", "status", "image", "created_at", "expires_at"}, rows, whole);
    co_return 0;
  }
};

struct Get : ServerCommand {
  std::string id;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    auto answer = CO_TRY(co_await api.ask("GET", sandbox_path(CO_TRY(co_await api.find(id)))));
    if (!answer.is_object()) co_return fail(Code::corrupt, "the answer is no object");
    bj::object info = sandbox_info(answer.as_object());
    if (output.is_table()) {
      bj::object shown = row_of(info);
      if (const auto* status = info["status"].if_object()) {
        shown["status_reason"] = status->at("reason");
        shown["status_message"] = status->at("message");
      }
      info = std::move(shown);
    }
    output.record("Sandbox Info", info);
    co_return 0;
  }
};

struct Kill : ServerCommand {
  std::vector<std::string> ids;
  void options(CLI::App& app) override {
    app.add_option("SANDBOX_ID", ids, "the sandboxes: ids, beginnings of them, or names")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    bj::array rows;
    for (const std::string& name : ids) {
      std::string id = CO_TRY(co_await api.find(name));
      CO_TRY(co_await api.remove(id));
      rows.push_back(bj::object{{"sandbox_id", id}, {"status", "terminated"}});
    }
    output.rows("Sandboxes", {"sandbox_id", "status"}, rows, rows);
    co_return 0;
  }
};

struct Pause : ServerCommand {
  std::string id;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await api.find(id));
    CO_TRY(co_await api.ask("POST", sandbox_path(found, "/pause")));
    output.ok("Pause request accepted: " + found);
    co_return 0;
  }
};

struct Resume : ServerCommand {
  std::string id, wait = "30s";
  bool at_once = false;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_flag("--skip-health-check", at_once, "do not wait until it answers");
    app.add_option("--resume-timeout", wait, "how long to wait for that (default: 30s)");
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    auto limit = CO_TRY(in_context("--resume-timeout", parse_duration(wait)));
    std::string found = CO_TRY(co_await api.find(id));
    CO_TRY(co_await api.ask("POST", sandbox_path(found, "/resume")));
    if (!at_once) CO_TRY(co_await await_ready(api, found, limit));
    output.ok("Sandbox resumed: " + found);
    co_return 0;
  }
};

struct Renew : ServerCommand {
  std::string id, by;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("-t,--timeout", by, "how long it shall live from now: 30m, 2h")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    auto time = CO_TRY(in_context("--timeout", parse_duration(by)));
    std::string found = CO_TRY(co_await api.find(id));
    auto until = wall_now() + std::chrono::duration_cast<std::chrono::microseconds>(time);
    bj::object body{{"expiresAt", format_api_time(until)}};
    auto answer =
        CO_TRY(co_await api.ask("POST", sandbox_path(found, "/renew-expiration"), json::print(body)));
    if (!answer.is_object()) co_return fail(Code::corrupt, "the answer is no object");
    std::string at = CO_TRY(text_of(answer.as_object(), "expiresAt"));
    // The published client prints it as Python does.
    if (at.size() > 11 && at[10] == 'T') at[10] = ' ';
    if (at.ends_with('Z')) at.replace(at.size() - 1, 1, "+00:00");
    output.made("Sandbox Renewed", {{"sandbox_id", found}, {"expires_at", at}});
    co_return 0;
  }
};

struct Endpoint : ServerCommand {
  std::string id;
  int port = 0;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("-p,--port", port, "where the program in it listens")
        ->required()
        ->check(CLI::Range(1, 65535));
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await api.find(id));
    auto answer = CO_TRY(co_await api.ask("GET", sandbox_path(found, fmt::format("/endpoints/{}", port))));
    if (!answer.is_object()) co_return fail(Code::corrupt, "the answer is no object");
    bj::object endpoint = only(answer.as_object(), {"endpoint", "headers", "origin"});
    if (endpoint["headers"].is_null()) endpoint["headers"] = bj::object();
    output.record("Sandbox Endpoint", endpoint);
    co_return 0;
  }
};

struct Health : ServerCommand {
  std::string id;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    bool healthy = (co_await api.text(api.execd(found, "/ping"))).has_value();
    if (!output.is_table())
      output.record("", {{"sandbox_id", found}, {"healthy", healthy}});
    else if (healthy)
      output.ok(fmt::format("Sandbox {} is healthy", found));
    else
      output.warn(fmt::format("Sandbox {} is not healthy", found));
    co_return 0;
  }
};

struct Metrics : ServerCommand {
  std::string id;
  bool watch = false;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_flag("--watch", watch, "go on, every second");
    output.options(app, {"table", "json", "yaml", "raw"});
  }
  // The wire has short names.
  static bj::object named(const bj::value& sample) {
    json::Issues ignored;
    auto field = json::Field::root(sample, ignored, "metrics");
    auto number = [&](std::initializer_list<std::string_view> names) {
      const bj::value* raw = field.any_of(names).raw();
      return raw && raw->is_number() ? raw->to_number<double>() : 0.0;
    };
    return {{"cpu_count", number({"cpu_count"})},
            {"cpu_used_percentage", number({"cpu_used_pct", "cpu_used_percentage"})},
            {"memory_total_in_mib", number({"mem_total_mib", "memory_total_in_mib"})},
            {"memory_used_in_mib", number({"mem_used_mib", "memory_used_in_mib"})},
            {"timestamp", field["timestamp"].integer().value_or(0)}};
  }
  Result<void> print_sample(std::string_view line) const {
    if (line.starts_with("data:")) line.remove_prefix(5);
    if (trim(line).empty()) return {};
    bj::object sample = named(TRY(json::parse(line)));
    if (output.format() == "json")
      fmt::print("{}\n", json::print(sample));
    else if (output.format() == "yaml")
      fmt::print("---\n{}", yaml(sample));
    else
      fmt::print("cpu {} of {} %  memory {} of {} MiB\n", json::print(sample["cpu_used_percentage"]),
                 json::print(sample["cpu_count"]), json::print(sample["memory_used_in_mib"]),
                 json::print(sample["memory_total_in_mib"]));
    if (std::fflush(stdout) != 0) return fail_errno("write");
    return {};
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    if (watch) {
      CO_TRY(co_await api.lines(api.execd(found, "/metrics/watch"),
                                [this](std::string_view line) { return print_sample(line); }));
      co_return 0;
    }
    output.record("Sandbox Metrics", named(CO_TRY(co_await api.ask("GET", api.execd(found, "/metrics")))));
    co_return 0;
  }
};

}  // namespace

void add_sandbox(CommandTree& tree) {
  CLI::App& sandbox = tree.group("sandbox", "make, list, pause, renew and end sandboxes");
  add_sandbox_create(tree, sandbox);
  add_server_command<List>(tree, sandbox, "list", "list sandboxes");
  add_server_command<Get>(tree, sandbox, "get", "what the server knows about a sandbox");
  add_server_command<Kill>(tree, sandbox, "kill", "end sandboxes");
  add_server_command<Pause>(tree, sandbox, "pause", "stop every process of a sandbox, until it is resumed");
  add_server_command<Resume>(tree, sandbox, "resume", "let a paused sandbox go on");
  add_server_command<Renew>(tree, sandbox, "renew", "let a sandbox live that much longer, from now");
  add_server_command<Endpoint>(tree, sandbox, "endpoint", "where a port of a sandbox is reached");
  add_server_command<Health>(tree, sandbox, "health", "whether a sandbox answers");
  add_server_command<Metrics>(tree, sandbox, "metrics", "what a sandbox uses of CPU and memory");
}

}  // namespace osb::cli
