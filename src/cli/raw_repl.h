#pragma once

// `osb repl` as options of a command. For the files that know the parser library.

#include <CLI/CLI.hpp>

#include "cli/raw_connection.h"

namespace osb::cli {

struct RawRepl {
  RawConnection connection;
  std::string image = "host", language = "python", cpu, memory;
  std::vector<std::string> env;

  void options(CLI::App& app) {
    connection.options(app);
    app.add_option("IMAGE", image, "image of the sandbox")->capture_default_str();
    app.add_option("-l,--language", language, "python, javascript, typescript, java, go or bash")
        ->capture_default_str();
    app.add_option("-e,--env", env,
                   "NAME=value for the sandbox, or NAME to pass your own value on; repeatable")
        ->take_all()
        ->expected(1)
        ->allow_extra_args(false);
    app.add_option("--cpu", cpu, "CPU limit: cores (1.5) or thousandths of one (500m)");
    app.add_option("--memory", memory, "memory limit: 256Mi, 1Gi");
    app.footer(
        "Reads cells from standard input, with a prompt when that is a terminal. What opens a bracket or a "
        "block goes\n"
        "on until it is closed; a Python block ends with a blank line. Ctrl-C interrupts the cell that runs, "
        "Ctrl-D leaves\n"
        "and removes the sandbox. Exit status: 0; 1 when the last cell of piped input failed; 125 when osb "
        "itself failed.");
  }

  Result<ReplOptions> read() const {
    ReplOptions repl;
    repl.connection = TRY(connection.read());
    repl.image = image;
    repl.language = language;
    for (const auto& text : env) repl.env.push_back(TRY(in_context("--env", parse_variable(text))));
    repl.cpu = cpu;
    repl.memory = memory;
    return repl;
  }
};

}  // namespace osb::cli
