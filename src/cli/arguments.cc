#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/client_settings.h"
#include "cli/command_tree.h"
#include "cli/raw_build.h"
#include "cli/raw_connection.h"
#include "cli/raw_forward.h"
#include "cli/raw_manage.h"
#include "cli/raw_mcp.h"
#include "cli/raw_pools.h"
#include "cli/raw_repl.h"
#include "cli/raw_skills.h"
#include "cli/raw_snapshots.h"
#include "cli/raw_volumes.h"
#include "cli/server_role_words.h"
#include "cli/usage.h"

namespace osb::cli {
namespace {

constexpr const char* kDefaultStateDir = "/var/lib/opensandbox";

// The words that nothing took, in the order in which they were typed.
std::vector<std::string> words_left(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  for (const CLI::App* sub : app.get_subcommands()) {
    for (std::string& word : words_left(*sub)) words.push_back(std::move(word));
  }
  return words;
}

// What is wrong with the first of them.
std::string unexpected_word(const CLI::App& app, std::string_view word) {
  if (word.size() > 1 && word.starts_with('-')) return fmt::format("unknown option {}", word);
  if (!app.get_subcommands().empty()) return fmt::format("unexpected word \"{}\"", word);
  std::string known;
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); }))
    known += (known.empty() ? "" : ", ") + sub->get_name();
  return fmt::format(
      "there is no command \"{}\"; the commands are {}\n  to run a program in a new sandbox: osb run IMAGE "
      "-- "
      "PROGRAM...",
      word, known);
}

constexpr const char* kTitle = "OpenSandbox: run commands in isolated sandboxes";

struct Line {
  CLI::App app{kTitle, "osb"};
  CommandTree tree{app};
};

struct RunHelp : CLI::Formatter {
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: osb run [OPTIONS] IMAGE -- COMMAND [ARGUMENT...]\n";
  }
};

struct RawRun {
  RawConnection connection;
  std::string image, snapshot, timeout, cpu, memory, shm, runtime, workdir, network;
  std::string name, ttl, user, disk, pids;
  std::vector<std::string> env, volumes;
  bool keep = false, input = false, terminal = false, detach = false;

  void options(CLI::App& app) {
    connection.options(app);
    app.add_option("IMAGE", image, "image of the sandbox; \"host\" is this machine's own /usr");
    app.add_option("--snapshot", snapshot, "id of a snapshot to make the sandbox from, instead of an image");
    app.add_option("-e,--env", env,
                   "NAME=value for the sandbox, or NAME to pass your own value on; repeatable")
        ->take_all()
        ->expected(1)
        ->allow_extra_args(false);
    app.add_option("-t,--timeout", timeout,
                   "kill the command after this time (90s, 10m, 1h30m) and exit with 124");
    app.add_flag("-i,--interactive", input, "pass standard input on to the command");
    app.add_flag("--tty", terminal, "give the command a terminal; -it is short for -i --tty");
    app.add_flag("-d,--detach", detach,
                 "do not wait: print the sandbox's id; it lives as long as the command, see osb logs");
    app.add_option("--name", name, "a name for the sandbox, wherever an id is wanted");
    app.add_option("--ttl", ttl, "with -d: end it after this time at the latest (default: never)");
    app.add_option("-u,--user", user, "who the command runs as: UID or UID:GID");
    app.add_option("--disk", disk, "how much it may write: 512Mi, 2Gi");
    app.add_option("--pids", pids, "how many processes at once");
    app.add_option("--cpu", cpu, "CPU limit: cores (1.5) or thousandths of one (500m)");
    app.add_option("--memory", memory, "memory limit: 256Mi, 1Gi");
    app.add_option("--shm-size", shm, "how large /dev/shm may become: 512Mi, 2Gi");
    app.add_option("--runtime", runtime,
                   "which of the server's runtimes has the sandbox: native, docker, runsc");
    app.add_option(
           "-v,--volume", volumes,
           "SOURCE:PATH or SOURCE:PATH:ro; the source is a directory of the server's host (/...) or the "
           "name of a volume; repeatable")
        ->take_all()
        ->expected(1)
        ->allow_extra_args(false);
    app.add_option("-w,--workdir", workdir, "directory to run the command in");
    app.add_option("--network", network,
                   "what the sandbox reaches: none, open (the public internet), or host names, *.names and "
                   "addresses with commas between; default: what the server says");
    app.add_flag("--keep", keep, "leave the sandbox running afterwards, without an expiry, and say its id");
    app.footer(
        "The command comes after -- and runs without a shell, with its words as they are:\n"
        "  osb run host -- python3 -c 'print(6*7)'\n"
        "Its output arrives byte for byte, and signals are passed on to it. Its standard input is empty "
        "without -i. osb exits with its exit code\n"
        "(128+N after signal N, 124 after --timeout, 125 when osb itself failed) and removes the sandbox,\n"
        "also after Ctrl-C. If osb is killed, the server removes the sandbox within a minute.");
  }

  Result<RunOptions> read(std::vector<std::string> command) const {
    RunOptions run;
    run.connection = TRY(connection.read());
    if (image.empty() == snapshot.empty())
      return fail(Code::invalid_argument, "name the image, or a snapshot with --snapshot ID, and not both");
    run.image = image.empty() ? "opensandbox-snapshots:" + snapshot : image;
    run.command = std::move(command);
    for (const auto& text : env) run.env.push_back(TRY(in_context("--env", parse_variable(text))));
    if (!timeout.empty() && timeout != "none")
      run.timeout = TRY(in_context("--timeout", parse_duration(timeout)));
    run.cpu = cpu;
    run.memory = memory;
    run.shm = shm;
    run.runtime = runtime;
    for (const auto& text : volumes) run.volumes.push_back(TRY(in_context("--volume", parse_volume(text))));
    run.workdir = workdir;
    run.network = network;
    run.keep = keep;
    run.name = name;
    run.disk = disk;
    run.pids = pids;
    run.input = input;
    run.terminal = terminal;
    run.detach = detach;
    if (!user.empty()) run.user = TRY(in_context("--user", parse_user(user)));
    if (!ttl.empty() && !detach)
      return fail(Code::invalid_argument, "--ttl is for -d; the other sandboxes go with osb");
    if (!ttl.empty())
      run.ttl = std::chrono::ceil<std::chrono::seconds>(TRY(in_context("--ttl", parse_duration(ttl))));
    if (detach && (input || terminal || keep || run.timeout || !workdir.empty() || run.user))
      return fail(
          Code::invalid_argument,
          "-d starts the command as the sandbox's own; --ttl limits it, and -i, --tty, --keep, --timeout, "
          "--workdir and --user do not go with it");
    if (terminal && run.timeout) return fail(Code::invalid_argument, "--timeout does not go with --tty");
    return run;
  }
};

enum class Instead { no, yes };  // of a server

void store_options(CLI::App& app, ImageStore& store, Instead instead = Instead::no) {
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
Result<std::optional<Connection>> server_unless(const ImageStore& store, const RawConnection& server) {
  if (store.config.empty() && store.state_dir.empty()) return TRY(server.read());
  if (server.server.empty()) return std::nullopt;
  return fail(Code::invalid_argument,
              "--server asks a server; --config and --state-dir name a store of this host: give one of them");
}

// One word each time the option is given.
CLI::Option* repeatable(CLI::Option* option) {
  return option->take_all()->expected(1)->allow_extra_args(false);
}

struct RawImages {
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

constexpr const char* kVersion = "osb, version " OSB_VERSION;

void describe_root(CLI::App& app) {
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(0, 1);
  app.failure_message(CLI::FailureMessage::simple);
  add_client_options(app);
}

CLI::App* describe_run(CLI::App& app, RawRun& raw) {
  CLI::App* run = app.add_subcommand("run", "create a sandbox, run a command in it, remove it");
  raw.options(*run);
  run->formatter(std::make_shared<RunHelp>());
  return run;
}

// Nothing when the words could be read.
std::optional<PrintAndExit> read_words(CLI::App& app, const CLI::App& run,
                                       const std::vector<std::string>& ours) {
  try {
    std::vector<std::string> reversed(ours.rbegin(), ours.rend());
    app.parse(std::move(reversed));
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    std::string see = "osb";
    for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
      at = at->get_subcommands().front();
      see += " " + at->get_name();
    }
    // Rather than what is missing because a misspelt option swallowed nothing.
    auto left = e.get_exit_code() == 0 ? std::vector<std::string>{} : words_left(app);
    if (left.empty()) return stopped(app, e, see);
    if (run.parsed() && !left.front().starts_with('-'))
      return usage("the command comes after --: osb run IMAGE -- COMMAND...", "osb run");
    return usage(unexpected_word(app, left.front()), see);
  }
}

using Words = std::optional<std::vector<std::string>>;

Command finish_run(const RawRun& raw, Words theirs) {
  if (!theirs || theirs->empty())
    return usage("no command; it comes after --: osb run IMAGE -- COMMAND...", "osb run");
  auto options = raw.read(std::move(*theirs));
  if (!options) return usage(options.error().message, "osb run");
  return std::move(*options);
}

// The commonest command without the others: to describe them all takes longer than to start a sandbox.
Command parse_run(const std::vector<std::string>& ours, Words theirs) {
  CLI::App app{kTitle, "osb"};
  describe_root(app);
  RawRun raw;
  const CLI::App* run = describe_run(app, raw);
  if (auto refused = read_words(app, *run, ours)) return std::move(*refused);
  return finish_run(raw, std::move(theirs));
}

}  // namespace

Command parse_osb_arguments(int argc, const char* const* argv) {
  auto [ours, theirs] = split_at_dashes(argc, argv);
  if (auto role = parse_server_role(ours)) return std::move(*role);
  if (auto occasion = parse_occasion(ours)) return *occasion;
  // What fingers know from elsewhere; -t alone is a time here.
  for (auto word = ours.begin(); word != ours.end(); ++word) {
    if (*word != "-it" && *word != "-ti") continue;
    *word = "-i";
    word = ours.insert(word + 1, "--tty");
  }

  if (ours.size() == 1 && ours[0] == "--version" && !theirs)
    return PrintAndExit{.out = std::string(kVersion) + "\n", .err = "", .status = 0};
  if (!ours.empty() && ours[0] == "run") return parse_run(ours, std::move(theirs));

  // Commands of the tree read their options when they run, which is after this.
  auto line = std::make_shared<Line>();
  CLI::App& app = line->app;
  describe_root(app);

  RawRun raw_run;
  CLI::App* run = describe_run(app, raw_run);

  CLI::App* repl = app.add_subcommand("repl", "a stateful prompt in a sandbox");
  RawRepl raw_repl;
  raw_repl.options(*repl);

  // One per subcommand: the parser applies environment variables to every subcommand, named or not.
  RawConnection to_rm, to_doctor;
  CLI::App* rm = app.add_subcommand("rm", "remove sandboxes");
  std::vector<std::string> ids;
  bool all = false;
  to_rm.options(*rm);
  rm->add_option("ID", ids, "ids as `osb ls` prints them");
  rm->add_flag("--all", all, "every sandbox of the server");

  CLI::App* doctor =
      app.add_subcommand("doctor", "say what this machine can do for sandboxes, and what to fix");
  std::string state_dir = kDefaultStateDir, server_config;
  bool attack = false;
  to_doctor.options(*doctor);
  doctor->add_option("--state-dir", state_dir, "where the server keeps its files")->capture_default_str();
  doctor->add_option("--config", server_config,
                     "the server's configuration file, for the engine that it names");
  doctor->add_flag("--attack", attack, "try to break out of a throw-away sandbox of the running server");

  CLI::App* images = app.add_subcommand("images", "pull, push, build, import, list and remove images");
  RawImages raw_images;
  raw_images.options(*images);

  add_all_commands(line->tree);
  RawSnapshots raw_snapshots;
  raw_snapshots.options(app);
  RawVolumes raw_volumes;
  raw_volumes.options(app);
  RawPools raw_pools;
  raw_pools.options(app);
  RawCommit raw_commit;
  raw_commit.options(app);
  RawManage raw_manage;
  raw_manage.options(app);
  RawForward raw_forward;
  raw_forward.options(app);
  RawMcp raw_mcp;
  raw_mcp.options(app);
  RawSkills raw_skills;
  raw_skills.options(app);

  // Without one of its commands it is the server process, started by the launcher; that is not for people.
  CLI::App* role = app.get_subcommand("server");
  ServerRoleOptions role_options;
  for (CLI::Option* option :
       {role->add_option("--host-image", role_options.host_image, "version of the image `host`"),
        role->add_option("--state-dir", role_options.state_dir, "where the service keeps its files"),
        role->add_option("--identity", role_options.identity, "which service this is"),
        role->add_option("--cgroups", role_options.cgroups, "without root: what control groups can do"),
        role->add_flag("--rootless", role_options.rootless, "the service was started by an ordinary user")})
    option->group("");
  role->get_option("--host-image")->needs(role->get_option("--state-dir"));
  role->get_option("--state-dir")->needs(role->get_option("--host-image"));

  CLI::App* keeper =
      app.add_subcommand("image-keeper", "internal: brings images here, started by the launcher");
  keeper->group("");
  ImageKeeperOptions keeper_options;
  keeper->add_option("--state-dir", keeper_options.state_dir, "where the service keeps its files")
      ->required();
  keeper->add_option("--service-gid", keeper_options.service_gid, "who may read the index")->required();
  CLI::App* fetcher = app.add_subcommand("image-fetcher", "internal: speaks to registries");
  fetcher->group("");

  if (auto refused = read_words(app, *run, ours)) return std::move(*refused);

  const CommandTree::Leaf* leaf = line->tree.chosen();
  bool takes_words =
      run->parsed() || raw_manage.takes_words() || (leaf && leaf->after == CommandTree::After::words);
  if (theirs && !takes_words) return usage("only commands that run a program take words after --", "osb");
  if (role->parsed() && role->get_subcommands().empty() && !role_options.host_image.empty())
    return role_options;
  if (leaf) {
    auto action = leaf->read(std::move(theirs));
    if (!action) return usage(action.error().message, path_of(*leaf->app));
    return Action{[line, run = std::move(action->run)](const Embedded& embedded) { return run(embedded); }};
  }
  auto finish = [](auto options, std::string_view see) -> Command {
    if (!options) return usage(options.error().message, see);
    return std::move(*options);
  };
  if (run->parsed()) return finish_run(raw_run, std::move(theirs));
  if (repl->parsed()) return finish(raw_repl.read(), "osb repl");
  if (images->parsed()) {
    auto command = raw_images.read();
    return command ? std::move(*command) : Command(usage(command.error().message, "osb images"));
  }
  if (raw_snapshots.parsed()) return finish(raw_snapshots.read(), "osb snapshot");
  if (raw_commit.commit->parsed()) return finish(raw_commit.read(), "osb commit");
  if (raw_mcp.mcp->parsed()) return finish(raw_mcp.read(), "osb mcp");
  if (raw_skills.skills->parsed()) return finish(raw_skills.read(), "osb skills");
  if (raw_volumes.volumes->parsed()) return finish(raw_volumes.read(), "osb volumes");
  if (raw_pools.pools->parsed()) return finish(raw_pools.read(), "osb pools");
  if (raw_manage.parsed()) {
    auto command = raw_manage.read(std::move(theirs));
    return command ? std::move(*command) : Command(usage(command.error().message, "osb"));
  }
  if (raw_forward.parsed()) {
    auto command = raw_forward.read();
    return command ? std::move(*command) : Command(usage(command.error().message, "osb forward"));
  }
  if (keeper->parsed()) return keeper_options;
  if (fetcher->parsed()) return ImageFetcherOptions{};
  if (app.get_subcommands().empty()) return PrintAndExit{.out = app.help(), .err = "", .status = 0};

  auto where = (rm->parsed() ? to_rm : to_doctor).read();
  if (!where) return usage(where.error().message, "osb");
  if (doctor->parsed() && where->occasion == Occasion::start) where->occasion = Occasion::running;
  if (doctor->parsed()) return DoctorOptions{*where, state_dir, attack, server_config};
  if (ids.empty() == !all) return usage("name the sandboxes to remove, or give --all", "osb rm");
  return RmOptions{*where, ids, all};
}

}  // namespace osb::cli
