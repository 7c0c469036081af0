// `osb ls`, `osb events` and `osb top`: what is there, what happens to it, what it uses.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/sandboxes.h"
#include "cli/scratch_sandbox.h"
#include "cli/server_command.h"
#include "cli/table.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using namespace std::chrono_literals;
using Short = RawConnection::Short;

constexpr size_t kMostRows = 200;  // that `top` asks; the rest is counted
constexpr const char* kClear = "\x1b[H\x1b[J";

std::string member(const bj::value& value, std::string_view name) {
  json::Issues ignored;
  std::string out = json::Field::root(value, ignored, "answer")[name].string().value_or("");
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return out;
}

std::string state_of(const bj::value& sandbox) {
  json::Issues ignored;
  return json::Field::root(sandbox, ignored, "sandbox")["status"]["state"].string().value_or("?");
}

bool has_metadata(const bj::value& sandbox, const bj::object& wanted) {
  const auto* object = sandbox.if_object();
  const auto* metadata = object ? object->if_contains("metadata") : nullptr;
  for (const auto& [name, value] : wanted) {
    const auto* found = metadata && metadata->is_object() ? metadata->as_object().if_contains(name) : nullptr;
    if (!found || *found != value) return false;
  }
  return true;
}

struct Ls : ServerCommand {
  std::vector<std::string> states, metadata;
  bool quiet = false, as_json = false;

  Short short_server() const override { return Short::yes; }
  void options(CLI::App& app) override {
    repeatable(app.add_option("--state", states, "only those in this state: running, paused; repeatable"));
    repeatable(app.add_option("-f,--filter", metadata,
                              "only those with this KEY=VALUE in their metadata; repeatable"));
    app.add_flag("-q,--quiet", quiet, "print ids only");
    app.add_flag("--json", as_json, "print the server's records as JSON");
    output.options(app, {"table", "wide", "json", "yaml"});
  }
  bool wanted(const bj::value& sandbox, const bj::object& pairs) const {
    bool state = states.empty() || std::ranges::any_of(states, [&](const std::string& one) {
                   return iequals(one, state_of(sandbox));
                 });
    return state && has_metadata(sandbox, pairs);
  }
  Task<Result<int>> run(Api& api) override {
    bj::object pairs = CO_TRY(key_values(metadata, "--filter"));
    auto found = CO_TRY(co_await api.list());
    std::erase_if(found, [&](const bj::value& one) { return !wanted(one, pairs); });
    if (quiet) {
      for (const bj::value& one : found) fmt::print("{}\n", member(one, "id"));
      co_return 0;
    }
    ServerRuntimes runtimes = co_await runtimes_of(api);
    bool is_wide = output.format() == "wide";
    if (!as_json && (is_wide || output.is_table())) {
      fmt::print("{}", sandbox_table(found, wall_now(), runtimes, is_wide ? Columns::all : Columns::needed));
      co_return 0;
    }
    for (bj::value& one : found) one.as_object()["runtime"] = runtime_of(one, runtimes);
    bj::array all(found.begin(), found.end());
    if (as_json)
      fmt::print("{}\n", json::print(all));
    else
      output.rows("", {}, all, all);
    co_return 0;
  }
};

struct Events : ServerCommand {
  bool all = false, as_json = false;
  Short short_server() const override { return Short::yes; }
  void options(CLI::App& app) override {
    app.add_flag("--all", all, "also what happened before, as long as it is known (a day)");
    app.add_flag("--json", as_json, "print the server's records as JSON");
    app.footer("Goes on until Ctrl-C.");
  }
  // Server-sent events: the data is one line.
  Result<void> print_line(std::string_view line) const {
    if (!line.starts_with("data:")) return {};
    line = trim(line.substr(5));
    std::string text(line);
    if (!as_json) {
      auto event = TRY(json::parse(line));
      text = fmt::format("{}  {}  {:<9}  {}", member(event, "at"), member(event, "sandboxId"),
                         member(event, "type"), member(event, "message"));
    }
    if (std::puts(text.c_str()) < 0 || std::fflush(stdout) != 0) return fail_errno("write");
    return {};
  }
  Task<Result<int>> run(Api& api) override {
    CO_TRY(co_await api.lines(all ? "/v1/events?lastEventId=0" : "/v1/events",
                              [this](std::string_view line) { return print_line(line); }));
    co_return 0;
  }
};

struct Top : ServerCommand {
  std::string every = "1s";
  bool once = false;
  Short short_server() const override { return Short::yes; }
  void options(CLI::App& app) override {
    app.add_option("-d,--delay", every, "how often to look (default: 1s)");
    app.add_flag("--once", once, "look once, as for a script; so it is without a terminal");
    app.footer("Goes on until Ctrl-C.");
  }
  static std::string number(const bj::value& metrics, std::initializer_list<std::string_view> names) {
    json::Issues ignored;
    const bj::value* raw = json::Field::root(metrics, ignored, "metrics").any_of(names).raw();
    return raw && raw->is_number() ? fmt::format("{:.1f}", raw->to_number<double>()) : "-";
  }
  // One that ends meanwhile has no numbers; that is no error.
  static Task<std::vector<std::string>> row_of(Api& api, bj::value sandbox) {
    std::string id = member(sandbox, "id"), state = state_of(sandbox);
    std::vector<std::string> row{id, state, "-", "-", "-", "-"};
    if (state != "Running" || !co_await api.unlock(id)) co_return row;
    auto metrics = co_await api.ask("GET", api.execd(id, "/metrics"));
    if (!metrics) co_return row;
    row[2] = number(*metrics, {"cpu_used_pct", "cpu_used_percentage"});
    row[3] = number(*metrics, {"cpu_count"});
    row[4] = number(*metrics, {"mem_used_mib", "memory_used_in_mib"});
    row[5] = number(*metrics, {"mem_total_mib", "memory_total_in_mib"});
    co_return row;
  }
  static Task<Result<std::string>> look(Api& api) {
    std::vector<std::vector<std::string>> rows{{"ID", "STATE", "CPU %", "CPUS", "MEMORY MIB", "OF MIB"}};
    auto found = CO_TRY(co_await api.list());
    for (const bj::value& one : found) {
      if (rows.size() > kMostRows) break;
      rows.push_back(co_await row_of(api, one));
    }
    std::string more = found.size() > kMostRows ? fmt::format("and {} more\n", found.size() - kMostRows) : "";
    co_return fmt::format("{} sandboxes, {}\n{}{}", found.size(), format_api_time(wall_now()),
                          print_table(rows), more);
  }
  Task<Result<int>> run(Api& api) override {
    auto pause = CO_TRY(in_context("--delay", parse_duration(every)));
    bool again = !once && ::isatty(STDOUT_FILENO);
    while (true) {
      std::string screen = CO_TRY(co_await look(api));
      fmt::print("{}{}", again ? kClear : "", screen);
      if (std::fflush(stdout) != 0) co_return fail_errno("write");
      if (!again) co_return 0;
      co_await io::sleep_for(pause);
    }
  }
};

}  // namespace

void add_lists(CommandTree& tree) {
  add_server_command<Ls>(tree, tree.root(), "ls", "list the sandboxes");
  add_server_command<Events>(tree, tree.root(), "events", "say what happens to sandboxes, as it happens");
  add_server_command<Top>(tree, tree.root(), "top", "what sandboxes use of CPU and memory, again and again");
}

}  // namespace osb::cli
