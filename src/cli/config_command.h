#pragma once

// What the commands about the user's settings have in common. For files of commands (command_tree.h).

#include "cli/api_error.h"
#include "cli/client_settings.h"
#include "cli/command_tree.h"
#include "cli/output.h"

namespace osb::cli {

// A command that works on the settings and asks nobody.
struct ConfigCommand {
  CLI::App* app = nullptr;
  Output output;
  virtual ~ConfigCommand() = default;
  virtual void own_options(CLI::App&) {}
  virtual Result<void> run(const ClientSettings& settings) = 0;
  void options(CLI::App& command) {
    app = &command;
    own_options(command);
    output.options(command);
  }
  Result<Action> read(const CommandTree::Words&) {
    return Action{[this](const Embedded&) {
      auto settings = client_settings(*app);
      // One that somebody removed by hand must not stand in the way of choosing another.
      if (!settings && settings.error().code == Code::not_found)
        settings = client_settings(*app, Addressed::yes);
      auto done = settings ? run(*settings) : std::unexpected(settings.error());
      if (done) return 0;
      print_error("osb", done.error());
      return 1;
    }};
  }
};

}  // namespace osb::cli
