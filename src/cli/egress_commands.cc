// `osb egress`: what a sandbox may reach, and what it tried to.

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/block_on.h"
#include "cli/egress_log.h"
#include "cli/egress_serve.h"
#include "cli/embedded.h"
#include "cli/server_command.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

// The same policy with the published client's names.
bj::object policy_of(const bj::value& answer) {
  const auto* object = answer.if_object();
  const auto* policy = object ? object->if_contains("policy") : nullptr;
  bj::value renamed = in_snake_case(policy ? *policy : answer);
  bj::object out =
      renamed.is_object() ? only(renamed.as_object(), {"default_action", "egress"}) : bj::object();
  if (const auto* rules = out["egress"].if_array()) {
    bj::array kept;
    for (const bj::value& rule : *rules)
      if (rule.is_object()) kept.push_back(only(rule.as_object(), {"action", "target"}));
    out["egress"] = std::move(kept);
  } else {
    out["egress"] = bj::array();
  }
  return out;
}

struct Get : ServerCommand {
  std::string id;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await api.find(id));
    output.record("Egress Policy",
                  policy_of(CO_TRY(co_await api.ask("GET", sandbox_path(found, "/networkpolicy")))));
    co_return 0;
  }
};

struct Patch : ServerCommand {
  std::string id;
  std::vector<std::string> rules;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    repeatable(
        app.add_option("--rule", rules, "allow=TARGET or deny=TARGET, before the other rules; repeatable"))
        ->required()
        ->check(CLI::Validator(
            [](const std::string& text) {
              bool good = (text.starts_with("allow=") || text.starts_with("deny=")) && !text.ends_with('=');
              return good ? std::string() : std::string("a rule is allow=TARGET or deny=TARGET");
            },
            "RULE"));
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    bj::array body;
    for (const std::string& rule : rules) {
      size_t equals = rule.find('=');
      body.push_back(bj::object{{"action", rule.substr(0, equals)}, {"target", rule.substr(equals + 1)}});
    }
    std::string found = CO_TRY(co_await api.find(id));
    CO_TRY(co_await api.ask("PATCH", sandbox_path(found, "/networkpolicy"), json::print(body)));
    output.record("Egress Patch Applied", {{"sandbox_id", found}, {"patched_rules", body}});
    co_return 0;
  }
};

struct Log : ServerCommand {
  EgressLogOptions read_;
  void options(CLI::App& app) override {
    sandbox_argument(app, read_.id);
    app.add_flag("-f,--follow", read_.follow, "go on until the sandbox ends");
    app.add_flag("--json", read_.json, "print the server's records as JSON");
  }
  Task<Result<int>> run(Api& api) override {
    read_.connection = CO_TRY(to.read());
    read_.id = CO_TRY(co_await api.find(read_.id));
    co_return co_await print_egress_log(read_);
  }
};

// The sidecar of a container or pod asks no server.
struct Serve {
  void options(CLI::App& app) {
    app.footer("Settings are the variables OPENSANDBOX_EGRESS_*: see docs/network.md.");
  }
  static Result<Action> read(const CommandTree::Words&) {
    return Action{[](const Embedded& embedded) { return become_sidecar(embedded.egress); }};
  }
};

}  // namespace

void add_egress(CommandTree& tree) {
  CLI::App& egress = tree.group("egress", "what sandboxes may reach, and what they tried to");
  add_server_command<Get>(tree, egress, "get", "what a sandbox may reach");
  add_server_command<Patch>(tree, egress, "patch", "put rules before those that are there");
  add_server_command<Log>(tree, egress, "log", "what a sandbox tried to reach, and what came of it");
  tree.add<Serve>(egress, "serve",
                  "police the network of the container or pod that this is started in, as its sidecar");
}

}  // namespace osb::cli
