#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/client_settings.h"
#include "cli/command_tree.h"
#include "cli/raw_connection.h"
#include "cli/raw_forward.h"
#include "cli/raw_images.h"
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
