#pragma once

// `osb skills` as options of a command. For the files that know the parser library.

#include <CLI/CLI.hpp>

#include "cli/skills.h"

namespace osb::cli {

struct RawSkills {
  CLI::App *skills = nullptr, *list = nullptr, *show = nullptr, *install = nullptr, *uninstall = nullptr;
  SkillsOptions shown;
  bool forced = false;

  void options(CLI::App& app) {
    skills = app.add_subcommand("skills", "instructions for coding agents");
    skills->require_subcommand(1);
    list = skills->add_subcommand("list", "what there is, for which agents, and where it is installed");
    show = skills->add_subcommand("show", "print one");
    install =
        skills->add_subcommand("install", "write them where an agent looks for them; again: update them");
    uninstall = skills->add_subcommand("uninstall", "take them away");
    for (CLI::App* one : {list, show, install, uninstall})
      one->add_option("-o,--output", shown.output, "table, json or yaml")
          ->check(CLI::IsMember({"table", "json", "yaml"}));
    for (CLI::App* one : {show, install, uninstall})
      one->add_option("NAME", shown.name, "as `osb skills list` has it");
    for (CLI::App* one : {install, uninstall}) {
      one->add_flag("--all-builtins", shown.all, "all of them");
      one->add_option("-t,--target", shown.target,
                      "claude, cursor, codex, copilot, windsurf, cline, opencode or all")
          ->check(
              CLI::IsMember({"claude", "cursor", "codex", "copilot", "windsurf", "cline", "opencode", "all"}))
          ->required();
      one->add_option("--scope", shown.scope, "project: this directory; global: your home directory")
          ->check(CLI::IsMember({"project", "global"}))
          ->required();
    }
    install->add_flag("-f,--force", forced, "accepted; an install never asks");
  }
  Result<SkillsOptions> read() {
    using What = SkillsOptions::What;
    shown.what = list->parsed()      ? What::list
                 : show->parsed()    ? What::show
                 : install->parsed() ? What::install
                                     : What::uninstall;
    if (shown.what == What::list) return shown;
    if (shown.what == What::uninstall && shown.name.empty()) shown.all = true;
    if (shown.name.empty() && !shown.all)
      return fail(Code::invalid_argument,
                  "name a skill, or give --all-builtins; osb skills list has the names");
    for (const Skill& skill : bundled_skills())
      if (shown.all || skill.slug == shown.name) return shown;
    return fail(Code::invalid_argument, "there is no such skill; osb skills list has the names");
  }
};

}  // namespace osb::cli
