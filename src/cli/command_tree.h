#pragma once

// How commands come onto the command line of `osb`. A file of commands defines
//
//   void add_NAME(CommandTree& tree);
//
// and commands.inc has the line OSB_COMMANDS(NAME). Nothing else has to know about it: parsing, help,
// completion and manual pages walk the tree. For the files that know the parser library.

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace osb::cli {

class CommandTree {
 public:
  using Words = std::optional<std::vector<std::string>>;  // what followed "--"; nothing without one
  using Read = std::function<Result<Action>(Words)>;      // after parsing; an error is one of usage
  enum class After { nothing, words };                    // whether a command takes words after "--"
  struct Leaf {
    CLI::App* app;
    Read read;
    After after;
  };

  explicit CommandTree(CLI::App& root) : root_(root) {}

  CLI::App& root() { return root_; }

  // Commands below one word. Two files may share one: the first gives it its help. Alone it prints what it
  // has.
  CLI::App& group(const std::string& name, const std::string& help, CLI::App* below = nullptr);

  void command(CLI::App& app, Read read, After after = After::nothing);

  // T is a struct that has `void options(CLI::App&)` and `Result<Action> read(Words)`; it lives as long as
  // the tree.
  template <class T>
  CLI::App& add(CLI::App& below, const std::string& name, const std::string& help,
                After after = After::nothing) {
    CLI::App& app = *below.add_subcommand(name, help);
    auto made = std::make_shared<T>();
    made->options(app);
    command(app, [made](Words words) { return made->read(std::move(words)); }, after);
    return app;
  }

  // What was given, the deepest; null when it is none of these.
  const Leaf* chosen() const;

 private:
  CLI::App& root_;
  std::vector<Leaf> leaves_;
};

// "osb sandbox list"
std::string path_of(const CLI::App& app);

// Everything in commands.inc.
void add_all_commands(CommandTree& tree);

}  // namespace osb::cli
