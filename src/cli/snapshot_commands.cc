// `osb snapshot` in the published client's words. Its `create` and ours are one command: without -o it waits
// and prints the id, with -o it prints what the server answers at once.

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/server_command.h"
#include "cli/snapshots.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

bj::object snapshot_info(const bj::value& answer) {
  bj::value renamed = in_snake_case(answer);
  if (!renamed.is_object()) return {};
  bj::object info = only(renamed.as_object(), {"id", "sandbox_id", "name", "status", "created_at"});
  if (auto* status = info["status"].if_object())
    *status = only(*status, {"state", "reason", "message", "last_transition_at"});
  return info;
}

bj::value state_of(const bj::object& info) {
  const auto* status = info.at("status").if_object();
  return status ? status->at("state") : bj::value();
}

struct Create : ServerCommand {
  std::string id, name;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("-n,--name", name, "a name for people");
    output.options(app);
    app.footer(
        "Without -o: prints the snapshot's id when it is complete. The sandbox stands still while its files "
        "are "
        "copied.");
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await api.find(id));
    if (!output.given()) {
      SnapshotOptions options{.what = SnapshotOptions::What::create,
                              .connection = CO_TRY(to.read()),
                              .sandbox = found,
                              .name = name};
      co_return co_await run_snapshots(std::move(options));
    }
    bj::object body;
    if (!name.empty()) body["name"] = name;
    bj::object info =
        snapshot_info(CO_TRY(co_await api.ask("POST", sandbox_path(found, "/snapshots"), json::print(body))));
    info["status"] = state_of(info);
    output.made("Snapshot Created", only(info, {"id", "sandbox_id", "name", "status"}));
    co_return 0;
  }
};

struct Get : ServerCommand {
  std::string id;
  void options(CLI::App& app) override {
    app.add_option("SNAPSHOT_ID", id, "the snapshot")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    bj::object info = snapshot_info(CO_TRY(co_await api.ask("GET", "/v1/snapshots/" + percent_encode(id))));
    if (const auto* status = info["status"].if_object(); status && output.is_table()) {
      bj::object whole = *status;
      info["status"] = whole["state"];
      info["status_reason"] = whole["reason"];
      info["status_message"] = whole["message"];
    }
    output.record("Snapshot Info", info);
    co_return 0;
  }
};

struct List : ServerCommand {
  std::string sandbox, name;
  std::vector<std::string> states;
  int64_t page = 0, page_size = 0;
  void options(CLI::App& app) override {
    app.add_option("--sandbox-id", sandbox, "only those of this sandbox");
    app.add_option("--name", name, "only those with exactly this name");
    repeatable(app.add_option("--state", states, "only those in this state; repeatable"));
    app.add_option("--page", page, "which page, from 1")->check(CLI::PositiveNumber);
    app.add_option("--page-size", page_size, "how many on one")->check(CLI::PositiveNumber);
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string query;
    auto add = [&](std::string_view key, const std::string& value) {
      query += fmt::format("{}{}={}", query.empty() ? "?" : "&", key, percent_encode(value));
    };
    if (!sandbox.empty()) add("sandboxId", CO_TRY(co_await api.find(sandbox)));
    if (!name.empty()) add("name", name);
    for (const std::string& state : states) add("state", state);
    if (page > 0) add("page", std::to_string(page));
    if (page_size > 0) add("pageSize", std::to_string(page_size));
    auto answer = CO_TRY(co_await api.ask("GET", "/v1/snapshots" + query));
    const auto* found = answer.is_object() ? answer.as_object().if_contains("items") : nullptr;
    if (!found || !found->is_array()) co_return fail(Code::corrupt, "the answer has no \"items\"");
    bj::array items, rows;
    for (const bj::value& one : found->as_array()) {
      bj::object info = snapshot_info(one), row = info;
      row["status"] = state_of(info);
      items.push_back(std::move(info));
      rows.push_back(std::move(row));
    }
    const auto* pages = answer.as_object().if_contains("pagination");
    bj::object whole{{"items", std::move(items)},
                     {"pagination", pages ? in_snake_case(*pages) : bj::value()}};
    output.rows("Snapshots", {"id", "name", "sandbox_id", "status", "created_at"}, rows, whole);
    co_return 0;
  }
};

struct Delete : ServerCommand {
  std::string id;
  void options(CLI::App& app) override {
    app.add_option("SNAPSHOT_ID", id, "the snapshot")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    CO_TRY(co_await api.ask("DELETE", "/v1/snapshots/" + percent_encode(id)));
    output.ok("Snapshot deleted: " + id);
    co_return 0;
  }
};

}  // namespace

void add_snapshot(CommandTree& tree) {
  CLI::App& snapshot = tree.group("snapshot", "keep the files of sandboxes, and make others from them");
  add_server_command<Create>(tree, snapshot, "create", "keep what a sandbox's files are now");
  add_server_command<Get>(tree, snapshot, "get", "what is known about a snapshot");
  add_server_command<List>(tree, snapshot, "list", "list snapshots, page by page");
  add_server_command<Delete>(tree, snapshot, "delete", "remove a snapshot");
}

}  // namespace osb::cli
