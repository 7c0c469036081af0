#pragma once

// The command line of `osb snapshot`, `fork`, `rollback` and `diff`. For the files that know the parser
// library.

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/raw_connection.h"

namespace osb::cli {

// Snapshots, and what is made of them at once.
struct RawSnapshots {
  RawConnection to_ls, to_rm, to_fork, to_rollback, to_diff;
  SnapshotOptions read_;
  std::string forked, rolled_back, target, compared;
  CLI::App *ls = nullptr, *rm = nullptr, *fork = nullptr, *rollback = nullptr, *diff = nullptr;

  void options(CLI::App& app) {
    CLI::App* snapshot = app.get_subcommand("snapshot");  // its other commands are in snapshot_commands.cc
    ls = snapshot->add_subcommand("ls", "list the snapshots");
    to_ls.options(*ls);
    ls->add_flag("--json", read_.json, "print the server's records as JSON");
    rm = snapshot->add_subcommand("rm", "remove snapshots");
    to_rm.options(*rm);
    rm->add_option("ID", read_.ids, "ids as `osb snapshot ls` prints them")->required();
    fork = app.add_subcommand("fork", "make sandboxes with the files that a running one has now");
    to_fork.options(*fork);
    fork->add_option("ID", forked, "the sandbox")->required();
    fork->add_option("-n,--count", read_.count, "how many")->capture_default_str();
    rollback =
        app.add_subcommand("rollback", "put a sandbox back to a snapshot: files as they were, processes new");
    to_rollback.options(*rollback);
    rollback->add_option("ID", rolled_back, "the sandbox")->required();
    rollback->add_option("SNAPSHOT", target, "the snapshot")->required();
    diff =
        app.add_subcommand("diff", "say which files a sandbox has added (A), modified (M) and deleted (D)");
    to_diff.options(*diff);
    diff->add_option("ID", compared, "the sandbox")->required();
  }

  bool parsed() const {
    return ls->parsed() || rm->parsed() || fork->parsed() || rollback->parsed() || diff->parsed();
  }

  Result<SnapshotOptions> read() {
    using What = SnapshotOptions::What;
    struct Choice {
      CLI::App* app;
      What what;
      RawConnection& to;
      std::string sandbox;
    };
    const Choice choices[] = {{ls, What::list, to_ls, ""},
                              {rm, What::remove, to_rm, ""},
                              {fork, What::fork, to_fork, forked},
                              {rollback, What::rollback, to_rollback, rolled_back},
                              {diff, What::diff, to_diff, compared}};
    for (const Choice& choice : choices) {
      if (!choice.app->parsed()) continue;
      read_.what = choice.what;
      read_.connection = TRY(choice.to.read());
      read_.sandbox = choice.sandbox;
      if (choice.what == What::rollback) read_.ids = {target};
    }
    return read_;
  }
};

}  // namespace osb::cli
