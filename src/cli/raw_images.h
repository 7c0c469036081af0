#pragma once

// The command line of `osb images`. For the files that know the parser library.

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/raw_build.h"
#include "cli/raw_connection.h"

namespace osb::cli {

enum class Instead { no, yes };  // of a server

inline void store_options(CLI::App& app, ImageStore& store, Instead instead = Instead::no) {
  const char* file = "the service's configuration file (default: $SANDBOX_CONFIG_PATH, else ~/.sandbox.toml)";
  const char* directory = "where the service keeps its files (default: as configured)";
  if (instead == Instead::yes) {
    file = "the store of this host that this configuration names, without a server";
    directory = "the store of this host in this state directory, without a server";
  }
  app.add_option("--config", store.config, file);
  app.add_option("--state-dir", store.state_dir, directory);
}

// Nothing: the store of this host, which was named.
inline Result<std::optional<Connection>> server_unless(const ImageStore& store, const RawConnection& server) {
  if (store.config.empty() && store.state_dir.empty()) return TRY(server.read());
  if (server.server.empty()) return std::nullopt;
  return fail(Code::invalid_argument,
              "--server asks a server; --config and --state-dir name a store of this host: give one of them");
}

struct RawImages {
  // One word each time the option is given.
  static CLI::Option* repeatable(CLI::Option* option) {
    return option->take_all()->expected(1)->allow_extra_args(false);
  }

  ImportImageOptions import_;
  LsImagesOptions ls_;
  RmImagesOptions rm_;
  PullImageOptions pull_;
  PushImageOptions push_;
  InspectImageOptions inspect_;
  RawConnection to_pull, to_push, to_inspect, to_prune, to_ls, to_rm;
  RawBuild build;
  RawCommit commit;
  std::string max_size, user, workdir;
  std::vector<std::string> env, labels;
  uint64_t max_entries = 0;
  CLI::App *import = nullptr, *ls = nullptr, *rm = nullptr, *pull = nullptr, *push = nullptr,
           *inspect = nullptr, *prune = nullptr;
  CLI::Option *user_option = nullptr, *workdir_option = nullptr;

  void options(CLI::App& app) {
    app.require_subcommand(1, 1);
    import = app.add_subcommand("import", "make an image of a root directory or of an archive");
    store_options(*import, import_.store);
    // Accepted in order to be explained: every other command has it.
    import->add_option("-s,--server", import_.store.server)->group("");
    import
        ->add_option(
            "SOURCE", import_.source,
            "a directory, or an archive: tar, docker save, OCI; plain, gzip, zstd or xz; - is standard input")
        ->required();
    repeatable(import->add_option("-n,--name", import_.names, "name of the image; repeatable"));
    import->add_option("--image-config", import_.config_file,
                       "JSON file with an OCI image configuration for a plain root");
    repeatable(import->add_option("-e,--env", env, "NAME=value for processes in the image; repeatable"));
    user_option = import->add_option("-u,--user", user, "who processes run as: a name or number, and :group");
    workdir_option = import->add_option("-w,--workdir", workdir, "where processes start");
    repeatable(import->add_option("--entrypoint", import_.entrypoint,
                                  "a word of the image's entrypoint; repeatable"));
    repeatable(import->add_option("--label", labels, "NAME=value; repeatable"));
    import->add_option("--max-size", max_size, "refuse images whose files are larger (default: 32Gi)");
    import->add_option("--max-entries", max_entries, "refuse images with more files (default: 1000000)");
    import->add_flag("-q,--quiet", import_.quiet, "print the image's id only");
    import->footer(
        "As root on the service's host. The running service sees the image at once. An import that is "
        "interrupted\n"
        "leaves nothing behind. Exit status: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted.");
    pull = app.add_subcommand("pull", "bring an image from its registry, through the server");
    to_pull.options(*pull);
    pull->add_option("NAME", pull_.name, "as in python:3.12 or registry.example:5000/team/app@sha256:...")
        ->required();
    pull->add_option("-u,--username", pull_.username,
                     "for the registry; the password is read from standard input");
    pull->add_flag("-q,--quiet", pull_.quiet, "print the image's id only");
    push = app.add_subcommand("push", "send an image or a snapshot to a registry, through the server");
    to_push.options(*push);
    push->add_option("NAME", push_.name, "an image of the server, or opensandbox-snapshots:ID")->required();
    push->add_option("AS", push_.target,
                     "what it is called there, as in registry.example:5000/team/app:1 (default: NAME)");
    push->add_option("-u,--username", push_.username,
                     "for the registry; the password is read from standard input");
    push->add_flag("-q,--quiet", push_.quiet, "print the digest only");
    inspect = app.add_subcommand("inspect", "print what the server knows about an image, as JSON");
    to_inspect.options(*inspect);
    inspect->add_option("NAME", inspect_.name, "a name or the beginning of an id")->required();
    prune = app.add_subcommand(
        "prune", "remove what came from registries and no sandbox uses, and kept steps of builds");
    to_prune.options(*prune);
    build.options(app);
    commit.options(app);
    ls = app.add_subcommand("ls", "list the images of the server");
    to_ls.options(*ls);
    store_options(*ls, ls_.store, Instead::yes);
    ls->add_flag("--json", ls_.json, "print the records as JSON");
    rm = app.add_subcommand("rm", "remove images by name or id, through the server");
    to_rm.options(*rm);
    store_options(*rm, rm_.store, Instead::yes);
    rm->add_option("NAME", rm_.names,
                   "names as `osb images ls` prints them, or the beginning of an id: all names of that image")
        ->required();
    rm->add_flag("-f,--force", rm_.force,
                 "also when sandboxes use it: its files go when the last of them is gone");
  }

  Result<Command> read() {
    if (!import_.store.server.empty()) {
      return fail(
          Code::invalid_argument,
          "images are not imported through a server: this works in the state directory of a service on "
          "this host; name it with --config FILE or --state-dir DIR");
    }
    if (pull->parsed()) {
      pull_.connection = TRY(to_pull.read());
      return pull_;
    }
    if (push->parsed()) {
      push_.connection = TRY(to_push.read());
      return push_;
    }
    if (inspect->parsed()) {
      inspect_.connection = TRY(to_inspect.read());
      return inspect_;
    }
    if (prune->parsed()) return PruneImagesOptions{TRY(to_prune.read())};
    if (build.build->parsed()) return TRY(build.read());
    if (commit.commit->parsed()) return TRY(commit.read());
    if (ls->parsed()) {
      ls_.connection = TRY(server_unless(ls_.store, to_ls));
      return ls_;
    }
    if (rm->parsed()) {
      rm_.connection = TRY(server_unless(rm_.store, to_rm));
      return rm_;
    }
    for (const auto& text : env) import_.env.push_back(TRY(in_context("--env", parse_variable(text))));
    for (const auto& text : labels)
      import_.labels.push_back(TRY(in_context("--label", parse_variable(text))));
    if (!max_size.empty()) import_.max_bytes = TRY(in_context("--max-size", parse_bytes(max_size)));
    if (max_entries != 0) import_.max_entries = max_entries;
    if (user_option->count() > 0) import_.user = user;
    if (workdir_option->count() > 0) import_.workdir = workdir;
    if (import_.workdir && !import_.workdir->starts_with('/')) {
      return fail(Code::invalid_argument, "--workdir must be an absolute path");
    }
    return import_;
  }
};

}  // namespace osb::cli
