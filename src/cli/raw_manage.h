#pragma once

// The command line of `osb exec`, `shell`, `inspect`, `logs`, `pause`, `resume` and `renew`. For the files
// that know the parser library.

#include <CLI/CLI.hpp>
#include <array>

#include "cli/raw_connection.h"

namespace osb::cli {

struct RawManage {
  using What = ManageOptions::What;
  struct Managing {
    What what;
    const char *name, *help;
    CLI::App* app = nullptr;
    RawConnection to = {};
  };

  CLI::App *exec = nullptr, *shell = nullptr;
  RawConnection to_exec, to_shell;
  ExecOptions exec_;
  ShellOptions shell_;
  std::string timeout, by, user;
  ManageOptions managed;
  std::array<Managing, 5> all = {{
      {What::inspect, "inspect", "print what the server knows about a sandbox, as JSON"},
      {What::logs, "logs", "print what the entry process of a sandbox wrote"},
      {What::pause, "pause", "stop every process of a sandbox, until it is resumed"},
      {What::resume, "resume", "let a paused sandbox go on"},
      {What::renew, "renew", "let a sandbox live that much longer, from now"},
  }};

  void options(CLI::App& app) {
    exec = app.add_subcommand("exec", "run a command in a sandbox that is there: osb exec ID -- COMMAND...");
    to_exec.options(*exec);
    exec->add_option("ID", exec_.id, "the sandbox: its id, the beginning of it, or its name")->required();
    exec->add_option("-w,--workdir", exec_.workdir, "where the command starts");
    exec->add_option("-t,--timeout", timeout, "end the command after this time: 90s, 10m");
    exec->add_flag("-i,--interactive", exec_.input, "pass standard input on to the command");
    exec->add_flag("--tty", exec_.terminal, "give the command a terminal; -it is short for -i --tty");
    exec->add_option("-u,--user", user, "who the command runs as: UID or UID:GID");
    shell = app.add_subcommand("shell",
                               "a terminal in a sandbox; after --, of a command. Ctrl-P Ctrl-Q leaves it");
    to_shell.options(*shell);
    shell->add_option("ID", shell_.id, "the sandbox: its id, the beginning of it, or its name")->required();
    shell->add_option("-w,--workdir", shell_.workdir, "where it starts");
    shell->add_option("--attach", shell_.session, "come back to a terminal that was left");
    for (Managing& one : all) {
      one.app = app.add_subcommand(one.name, one.help);
      one.to.options(*one.app);
      one.app->add_option("ID", managed.id, "the sandbox: its id, the beginning of it, or its name")
          ->required();
    }
    all[1].app->add_flag("-f,--follow", managed.follow, "go on until the process ends");
    all[4].app->add_option("TIME", by, "90s, 10m, 1h")->required();
  }

  bool takes_words() const { return exec->parsed() || shell->parsed(); }
  bool parsed() const {
    for (const Managing& one : all)
      if (one.app->parsed()) return true;
    return takes_words();
  }

  Result<Command> read(std::optional<std::vector<std::string>> words) {
    if (exec->parsed()) {
      if (!words || words->empty())
        return fail(Code::invalid_argument, "no command; it comes after --: osb exec ID -- COMMAND...");
      exec_.connection = TRY(to_exec.read());
      exec_.command = std::move(*words);
      if (!timeout.empty()) exec_.timeout = TRY(parse_duration(timeout));
      if (!user.empty()) exec_.user = TRY(in_context("--user", parse_user(user)));
      return Command(exec_);
    }
    if (shell->parsed()) {
      shell_.connection = TRY(to_shell.read());
      if (words) shell_.command = std::move(*words);
      return Command(shell_);
    }
    for (Managing& one : all) {
      if (!one.app->parsed()) continue;
      managed.what = one.what;
      managed.connection = TRY(one.to.read());
    }
    if (!by.empty()) managed.by = TRY(parse_duration(by));
    return Command(managed);
  }
};

}  // namespace osb::cli
