// `osb diagnostics` and `osb devops`: what went on in a sandbox, in the published client's words.

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/server_command.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

// With a scope the server answers with a record, without one with text.
struct Diagnostics : ServerCommand {
  std::string id, scope;
  const char *kind, *title;
  Diagnostics(const char* kind, const char* title) : kind(kind), title(title) {}

  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("-s,--scope", scope, "of what: container, runtime, all")->required();
    output.options(app, {"raw", "table", "json", "yaml"});
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await api.find(id));
    std::string path =
        sandbox_path(found, fmt::format("/diagnostics/{}?scope={}", kind, percent_encode(scope)));
    bj::value renamed = in_snake_case(CO_TRY(co_await api.ask("GET", path)));
    if (!renamed.is_object()) co_return fail(Code::corrupt, "the answer is no object");
    bj::object record =
        only(renamed.as_object(), {"sandbox_id", "kind", "scope", "delivery", "content_type", "truncated",
                                   "content", "content_url", "content_length", "expires_at", "warnings"});
    if (output.format() != "raw") {
      output.record(title, record);
      co_return 0;
    }
    for (const char* name : {"content", "content_url"}) {
      if (const auto* text = record[name].if_string()) {
        fmt::print("{}\n", std::string_view(*text));
        break;
      }
    }
    if (record["truncated"] == true) fmt::print(stderr, "Warning: the content is not complete\n");
    co_return 0;
  }
};
struct Logs : Diagnostics {
  Logs() : Diagnostics("logs", "Diagnostic Logs") {}
};
struct Events : Diagnostics {
  Events() : Diagnostics("events", "Diagnostic Events") {}
};

struct Devops : ServerCommand {
  std::string id;
  void print(const std::string& text) const { fmt::print("{}\n", text); }
  void arguments(CLI::App& app) {
    sandbox_argument(app, id);
    output.options(app, {"raw"});
  }
  static void deprecated(const char* name) {
    fmt::print(stderr, "Warning: `osb devops {}` is deprecated. Use `osb diagnostics {}`.\n", name, name);
  }
};

struct DevopsLogs : Devops {
  int64_t tail = 100;
  std::string since;
  void options(CLI::App& app) override {
    arguments(app);
    app.add_option("-n,--tail", tail, "how many lines, the last ones (default: 100)");
    app.add_option("-s,--since", since, "only what is newer than this time: 10m, 1h");
  }
  Task<Result<int>> run(Api& api) override {
    deprecated("logs");
    std::string path =
        sandbox_path(CO_TRY(co_await api.find(id)), fmt::format("/diagnostics/logs?tail={}", tail));
    if (!since.empty()) path += "&since=" + percent_encode(since);
    print(CO_TRY(co_await api.text(path)));
    co_return 0;
  }
};

struct DevopsInspect : Devops {
  void options(CLI::App& app) override { arguments(app); }
  Task<Result<int>> run(Api& api) override {
    print(CO_TRY(co_await api.text(sandbox_path(CO_TRY(co_await api.find(id)), "/diagnostics/inspect"))));
    co_return 0;
  }
};

struct DevopsEvents : Devops {
  int64_t limit = 50;
  void options(CLI::App& app) override {
    arguments(app);
    app.add_option("-l,--limit", limit, "how many (default: 50)");
  }
  Task<Result<int>> run(Api& api) override {
    deprecated("events");
    std::string found = CO_TRY(co_await api.find(id));
    print(CO_TRY(co_await api.text(sandbox_path(found, fmt::format("/diagnostics/events?limit={}", limit)))));
    co_return 0;
  }
};

struct DevopsSummary : Devops {
  int64_t tail = 50, events = 20;
  void options(CLI::App& app) override {
    arguments(app);
    app.add_option("-n,--tail", tail, "how many lines of output (default: 50)");
    app.add_option("--event-limit", events, "how many events (default: 20)");
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await api.find(id));
    print(CO_TRY(co_await api.text(
        sandbox_path(found, fmt::format("/diagnostics/summary?tail={}&event_limit={}", tail, events)))));
    co_return 0;
  }
};

}  // namespace

void add_diagnostics(CommandTree& tree) {
  CLI::App& diagnostics = tree.group("diagnostics", "what a sandbox wrote and what happened to it");
  add_server_command<Logs>(tree, diagnostics, "logs", "what the sandbox wrote");
  add_server_command<Events>(tree, diagnostics, "events", "what happened to the sandbox");
  CLI::App& devops = tree.group("devops", "the same as text, for people");
  add_server_command<DevopsLogs>(tree, devops, "logs", "deprecated: osb diagnostics logs");
  add_server_command<DevopsInspect>(tree, devops, "inspect", "everything that is known about a sandbox");
  add_server_command<DevopsEvents>(tree, devops, "events", "deprecated: osb diagnostics events");
  add_server_command<DevopsSummary>(tree, devops, "summary", "inspect, events and logs at once");
}

}  // namespace osb::cli
