#pragma once

// A command that asks a server: a struct with its options and what it does. For files of commands
// (command_tree.h).
//
//   struct Health : ServerCommand {
//     std::string id;
//     void options(CLI::App& app) override { sandbox_argument(app, id); output.options(app); }
//     Task<Result<int>> run(Api& api) override { ... }
//   };
//   add_server_command<Health>(tree, group, "health", "whether a sandbox answers");

#include "cli/api.h"
#include "cli/command_tree.h"
#include "cli/output.h"
#include "cli/raw_connection.h"

namespace osb::cli {

class ServerCommand {
 public:
  virtual ~ServerCommand() = default;
  virtual void options(CLI::App& app) = 0;
  virtual Task<Result<int>> run(Api& api) = 0;  // the exit status

  // Whether -s is free for --server; commands of the published client have other uses for it.
  virtual RawConnection::Short short_server() const { return RawConnection::Short::no; }

  // Runs it to its end and says what went wrong; 1 then.
  int execute();

  RawConnection to = {};
  Output output = {};
  CommandTree::Words words = {};  // what followed "--"
};

template <class T>
CLI::App& add_server_command(CommandTree& tree, CLI::App& below, const std::string& name,
                             const std::string& help,
                             CommandTree::After after = CommandTree::After::nothing) {
  CLI::App& app = *below.add_subcommand(name, help);
  auto command = std::make_shared<T>();
  command->options(app);
  command->to.options(app, command->short_server());
  tree.command(
      app,
      [command](CommandTree::Words words) -> Result<Action> {
        command->words = std::move(words);
        return Action{[command](const Embedded&) { return command->execute(); }};
      },
      after);
  return app;
}

// The sandbox a command is about: an id, the beginning of one, or a name.
CLI::Option* sandbox_argument(CLI::App& app, std::string& into);
CLI::Option* repeatable(CLI::Option* option);  // one word each time it is given

// "/v1/sandboxes/ID" and what follows it.
std::string sandbox_path(const std::string& id, std::string_view rest = "");
// Finds it, and opens its ports for what follows.
Task<Result<std::string>> reach(Api& api, std::string name);

// "K=V", both as typed.
Result<json::bj::object> key_values(const std::vector<std::string>& texts, std::string_view option);
// The members of an answer by other names: "lastTransitionAt" is "last_transition_at".
json::bj::value in_snake_case(const json::bj::value& value);
// Exactly these members, in this order; null for what the answer does not have.
json::bj::object only(const json::bj::object& answer, std::initializer_list<const char*> names);
json::bj::object sandbox_info(const json::bj::object& answer);  // as `sandbox get` prints it

}  // namespace osb::cli
