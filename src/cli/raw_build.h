#pragma once

// The command line of `osb images build` and `osb commit`.

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/raw_connection.h"

namespace osb::cli {

struct RawBuild {
  RawConnection to;
  BuildImageOptions read_;
  std::vector<std::string> arguments;
  CLI::App* build = nullptr;

  void options(CLI::App& images) {
    build = images.add_subcommand("build", "make an image by a Dockerfile, in sandboxes of the server");
    to.options(*build);
    build->add_option("DIR", read_.context, "the context: the files that COPY and ADD see")->required();
    build->add_option("-f,--file", read_.file, "the Dockerfile (default: DIR/Dockerfile)");
    build->add_option("-t,--tag", read_.name, "name of the image");
    build
        ->add_option("--build-arg", arguments,
                     "NAME=value of an ARG, or NAME for the caller's own; repeatable")
        ->take_all()
        ->expected(1)
        ->allow_extra_args(false);
    build->add_option("--target", read_.target, "the stage to build; default: the last");
    build->add_flag("--no-cache", read_.no_cache, "carry out every step, also those that are known");
    build->add_option("--cpu", read_.cpu, "processors of a step, as in 0.5 or 500m");
    build->add_option("--memory", read_.memory, "memory of a step, as in 512Mi");
    build->add_option("--network", read_.network,
                      "what steps reach: none, open, or targets with commas between");
    build->add_flag("-q,--quiet", read_.quiet, "print the image's id only");
    build->footer(
        "Each step is kept as a snapshot named osb-build:KEY; `osb images prune` removes those.\n"
        "Exit status: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted.");
  }

  Result<BuildImageOptions> read() {
    read_.connection = TRY(to.read());
    for (const std::string& text : arguments)
      read_.arguments.push_back(TRY(in_context("--build-arg", parse_variable(text))));
    return read_;
  }
};

struct RawCommit {
  RawConnection to;
  CommitImageOptions read_;
  std::vector<std::string> env, labels;
  std::string user, workdir;
  CLI::App* commit = nullptr;
  CLI::Option *user_option = nullptr, *workdir_option = nullptr;

  void options(CLI::App& app) {
    auto repeatable = [](CLI::Option* option) { option->take_all()->expected(1)->allow_extra_args(false); };
    commit = app.add_subcommand("commit", "make an image of a sandbox or a snapshot");
    to.options(*commit);
    commit->add_option("ID", read_.id, "the sandbox")->required();
    commit->add_option("NAME", read_.name, "name of the image")->required();
    commit->add_flag("--snapshot", read_.is_snapshot, "ID is that of a snapshot");
    repeatable(commit->add_option("-e,--env", env, "NAME=value for processes in the image; repeatable"));
    user_option = commit->add_option("-u,--user", user, "who processes run as: a name or number, and :group");
    workdir_option = commit->add_option("-w,--workdir", workdir, "where processes start");
    repeatable(
        commit->add_option("--entrypoint", read_.entrypoint, "a word of the image's entrypoint; repeatable"));
    repeatable(commit->add_option("--label", labels, "NAME=value; repeatable"));
    repeatable(commit->add_option("--expose", read_.ports, "a port, as in 8080 or 53/udp; repeatable"));
    commit->footer("Prints the image's id. What is not given is as the image below says.");
  }

  Result<CommitImageOptions> read() {
    read_.connection = TRY(to.read());
    for (const auto& text : env) read_.env.push_back(TRY(in_context("--env", parse_variable(text))));
    for (const auto& text : labels) read_.labels.push_back(TRY(in_context("--label", parse_variable(text))));
    if (user_option->count() > 0) read_.user = user;
    if (workdir_option->count() > 0) read_.workdir = workdir;
    return read_;
  }
};

}  // namespace osb::cli
