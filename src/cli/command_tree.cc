#include "cli/command_tree.h"

#include <fmt/format.h>

namespace osb::cli {

#define OSB_COMMANDS(NAME) void add_##NAME(CommandTree& tree);
#include "cli/commands.inc"
#undef OSB_COMMANDS

CLI::App& CommandTree::group(const std::string& name, const std::string& help, CLI::App* below) {
  CLI::App& parent = below ? *below : root_;
  for (CLI::App* there : parent.get_subcommands([&](CLI::App* one) { return one->get_name() == name; }))
    return *there;
  CLI::App& app = *parent.add_subcommand(name, help);
  app.require_subcommand(0, 1);
  command(app, [&app](Words) -> Result<Action> {
    return Action{[text = app.help(path_of(*app.get_parent()))](const Embedded&) {
      fmt::print("{}", text);
      return 0;
    }};
  });
  return app;
}

void CommandTree::command(CLI::App& app, Read read, After after) {
  leaves_.push_back({&app, std::move(read), after});
}

const CommandTree::Leaf* CommandTree::chosen() const {
  for (const Leaf& leaf : leaves_)
    if (leaf.app->parsed() && leaf.app->get_subcommands().empty()) return &leaf;
  return nullptr;
}

std::string path_of(const CLI::App& app) {
  return app.get_parent() ? path_of(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

void add_all_commands(CommandTree& tree) {
#define OSB_COMMANDS(NAME) add_##NAME(tree);
#include "cli/commands.inc"
#undef OSB_COMMANDS
}

}  // namespace osb::cli
