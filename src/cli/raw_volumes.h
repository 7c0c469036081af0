#pragma once

// The command line of `osb volumes`.

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/raw_connection.h"

namespace osb::cli {

struct RawVolumes {
  RawConnection to_ls, to_rm;
  VolumeOptions read_;
  CLI::App *volumes = nullptr, *ls = nullptr, *rm = nullptr;

  void options(CLI::App& app) {
    volumes = app.add_subcommand("volumes", "list and remove named volumes");
    volumes->require_subcommand(1, 1);
    ls = volumes->add_subcommand("ls", "list the volumes");
    to_ls.options(*ls);
    ls->add_flag("--json", read_.json, "print the server's records as JSON");
    rm = volumes->add_subcommand("rm", "remove volumes that no sandbox uses, with everything in them");
    to_rm.options(*rm);
    rm->add_option("NAME", read_.names, "names as `osb volumes ls` prints them")->required();
    volumes->footer("`osb run -v NAME:/path` makes a volume when there is none of that name.");
  }

  Result<VolumeOptions> read() {
    read_.connection = TRY((ls->parsed() ? to_ls : to_rm).read());
    return read_;
  }
};

}  // namespace osb::cli
