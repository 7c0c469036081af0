#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

namespace osb::cli {
namespace {

constexpr int kUsage = 2;  // exit status of a wrong command line
constexpr const char* kDefaultStateDir = "/var/lib/opensandbox";

// `see` is the command whose help to read; its first word is the program.
PrintAndExit usage(std::string_view message, std::string_view see) {
  std::string_view program = see.substr(0, see.find(' '));
  return {
      .out = "", .err = fmt::format("{}: {}\n  see: {} --help\n", program, message, see), .status = kUsage};
}

// Help, version and mistakes all end parsing with an exception; this is what it says.
PrintAndExit stopped(const CLI::App& app, const CLI::ParseError& e, std::string_view see) {
  std::ostringstream out, err;
  int status = app.exit(e, out, err);
  if (status == 0) return {.out = out.str(), .err = "", .status = 0};
  return usage(e.what(), see);
}

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

struct RawConnection {
  std::string server = "localhost:8080", key;

  void options(CLI::App& app) {
    app.add_option("-s,--server", server, "HOST:PORT of the server")
        ->envname("OPEN_SANDBOX_DOMAIN")
        ->capture_default_str();
    app.add_option("--api-key", key, "the server's key; better in the environment than here")
        ->envname("OPEN_SANDBOX_API_KEY");
  }
  Result<Connection> read() const { return Connection{TRY(parse_server_address(server)), key}; }
};

struct RunHelp : CLI::Formatter {
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: osb run [OPTIONS] IMAGE -- COMMAND [ARGUMENT...]\n";
  }
};

struct RawRun {
  RawConnection connection;
  std::string image, timeout, cpu, memory, workdir;
  std::vector<std::string> env;
  bool keep = false;

  void options(CLI::App& app) {
    connection.options(app);
    app.add_option("IMAGE", image, "image of the sandbox; \"host\" is this machine's own /usr")->required();
    app.add_option("-e,--env", env,
                   "NAME=value for the sandbox, or NAME to pass your own value on; repeatable")
        ->take_all()
        ->expected(1)
        ->allow_extra_args(false);
    app.add_option("-t,--timeout", timeout,
                   "kill the command after this time (90s, 10m, 1h30m) and exit with 124");
    app.add_option("--cpu", cpu, "CPU limit: cores (1.5) or thousandths of one (500m)");
    app.add_option("--memory", memory, "memory limit: 256Mi, 1Gi");
    app.add_option("-w,--workdir", workdir, "directory to run the command in");
    app.add_flag("--keep", keep, "leave the sandbox running afterwards, without an expiry, and say its id");
    app.footer(
        "The command comes after -- and runs without a shell, with its words as they are:\n"
        "  osb run host -- python3 -c 'print(6*7)'\n"
        "Its standard input is empty; its output arrives as text, line by line. osb exits with its exit "
        "code\n"
        "(128+N after signal N, 124 after --timeout, 125 when osb itself failed) and removes the sandbox,\n"
        "also after Ctrl-C. If osb is killed, the server removes the sandbox within a minute.");
  }

  Result<RunOptions> read(std::vector<std::string> command) const {
    RunOptions run;
    run.connection = TRY(connection.read());
    run.image = image;
    run.command = std::move(command);
    for (const auto& text : env) run.env.push_back(TRY(in_context("--env", parse_variable(text))));
    if (!timeout.empty() && timeout != "none")
      run.timeout = TRY(in_context("--timeout", parse_duration(timeout)));
    run.cpu = cpu;
    run.memory = memory;
    run.workdir = workdir;
    run.keep = keep;
    return run;
  }
};

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

void store_options(CLI::App& app, ImageStore& store) {
  // Accepted in order to be explained: every other command has it.
  app.add_option("-s,--server", store.server)->group("");
  app.add_option("--config", store.config,
                 "the service's configuration file (default: $SANDBOX_CONFIG_PATH, else ~/.sandbox.toml)");
  app.add_option("--state-dir", store.state_dir,
                 "where the service keeps its files (default: as configured)");
}

// One word each time the option is given.
CLI::Option* repeatable(CLI::Option* option) {
  return option->take_all()->expected(1)->allow_extra_args(false);
}

struct RawImages {
  ImportImageOptions import_;
  LsImagesOptions ls_;
  RmImagesOptions rm_;
  std::string max_size, user, workdir;
  std::vector<std::string> env, labels;
  uint64_t max_entries = 0;
  CLI::App *import = nullptr, *ls = nullptr, *rm = nullptr;
  CLI::Option *user_option = nullptr, *workdir_option = nullptr;

  void options(CLI::App& app) {
    app.require_subcommand(1, 1);
    import = app.add_subcommand("import", "make an image of a root directory or of an archive");
    store_options(*import, import_.store);
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
    ls = app.add_subcommand("ls", "list the imported images");
    store_options(*ls, ls_.store);
    ls->add_flag("--json", ls_.json, "print the records as JSON");
    rm = app.add_subcommand("rm", "remove images by name");
    store_options(*rm, rm_.store);
    rm->add_option("NAME", rm_.names, "names as `osb images ls` prints them")->required();
    rm->add_flag("-f,--force", rm_.force,
                 "also when sandboxes use it: its files go when the last of them is gone");
  }

  Result<Command> read() {
    for (const ImageStore* store : {&import_.store, &ls_.store, &rm_.store}) {
      if (store->server.empty()) continue;
      return fail(
          Code::invalid_argument,
          "images are not reached through a server: this works in the state directory of a service on "
          "this host; name it with --config FILE or --state-dir DIR");
    }
    if (ls->parsed()) return ls_;
    if (rm->parsed()) return rm_;
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

}  // namespace

Command parse_osb_arguments(int argc, const char* const* argv) {
  auto [ours, theirs] = split_at_dashes(argc, argv);

  CLI::App app{"OpenSandbox: run commands in isolated sandboxes", "osb"};
  app.set_version_flag("--version", "osb, version " OSB_VERSION);
  app.require_subcommand(0, 1);
  app.failure_message(CLI::FailureMessage::simple);

  CLI::App* run = app.add_subcommand("run", "create a sandbox, run a command in it, remove it");
  RawRun raw_run;
  raw_run.options(*run);
  run->formatter(std::make_shared<RunHelp>());

  CLI::App* repl = app.add_subcommand("repl", "a stateful prompt in a sandbox");
  RawRepl raw_repl;
  raw_repl.options(*repl);

  // One per subcommand: the parser applies environment variables to every subcommand, named or not.
  RawConnection to_ls, to_rm, to_doctor;
  CLI::App* ls = app.add_subcommand("ls", "list the sandboxes");
  bool json = false;
  to_ls.options(*ls);
  ls->add_flag("--json", json, "print the server's records as JSON");

  CLI::App* rm = app.add_subcommand("rm", "remove sandboxes");
  std::vector<std::string> ids;
  bool all = false;
  to_rm.options(*rm);
  rm->add_option("ID", ids, "ids as `osb ls` prints them");
  rm->add_flag("--all", all, "every sandbox of the server");

  CLI::App* doctor =
      app.add_subcommand("doctor", "say what this machine can do for sandboxes, and what to fix");
  std::string state_dir = kDefaultStateDir;
  bool attack = false;
  to_doctor.options(*doctor);
  doctor->add_option("--state-dir", state_dir, "where the server keeps its files")->capture_default_str();
  doctor->add_flag("--attack", attack, "try to break out of a throw-away sandbox of the running server");

  CLI::App* images = app.add_subcommand("images", "import, list and remove images");
  RawImages raw_images;
  raw_images.options(*images);

  CLI::App* role = app.add_subcommand("server", "internal: the server process, started by the launcher");
  role->group("");  // not for people
  ServerRoleOptions role_options;
  role->add_option("--host-image", role_options.host_image, "version of the image `host`")->required();
  role->add_option("--state-dir", role_options.state_dir, "where the service keeps its files")->required();
  role->add_option("--identity", role_options.identity, "which service this is");
  role->add_option("--cgroups", role_options.cgroups, "without root: what control groups can do");
  role->add_flag("--rootless", role_options.rootless, "the service was started by an ordinary user");

  try {
    std::vector<std::string> reversed(ours.rbegin(), ours.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& e) {
    std::string see = "osb";
    for (const CLI::App* sub : app.get_subcommands()) {
      see += " " + sub->get_name();
      for (const CLI::App* below : sub->get_subcommands()) see += " " + below->get_name();
    }
    // Rather than what is missing because a misspelt option swallowed nothing.
    auto left = e.get_exit_code() == 0 ? std::vector<std::string>{} : words_left(app);
    if (left.empty()) return stopped(app, e, see);
    if (run->parsed() && !left.front().starts_with('-'))
      return usage("the command comes after --: osb run IMAGE -- COMMAND...", "osb run");
    return usage(unexpected_word(app, left.front()), see);
  }

  if (theirs && !run->parsed()) return usage("only `osb run` takes words after --", "osb");
  auto finish = [](auto options, std::string_view see) -> Command {
    if (!options) return usage(options.error().message, see);
    return std::move(*options);
  };
  if (run->parsed()) {
    if (!theirs || theirs->empty())
      return usage("no command; it comes after --: osb run IMAGE -- COMMAND...", "osb run");
    return finish(raw_run.read(std::move(*theirs)), "osb run");
  }
  if (repl->parsed()) return finish(raw_repl.read(), "osb repl");
  if (images->parsed()) {
    auto command = raw_images.read();
    return command ? std::move(*command) : Command(usage(command.error().message, "osb images"));
  }
  if (role->parsed()) return role_options;
  if (app.get_subcommands().empty()) return PrintAndExit{.out = app.help(), .err = "", .status = 0};

  auto where = (ls->parsed() ? to_ls : rm->parsed() ? to_rm : to_doctor).read();
  if (!where) return usage(where.error().message, "osb");
  if (ls->parsed()) return LsOptions{*where, json};
  if (doctor->parsed()) return DoctorOptions{*where, state_dir, attack};
  if (ids.empty() == !all) return usage("name the sandboxes to remove, or give --all", "osb rm");
  return RmOptions{*where, ids, all};
}

Command parse_server_arguments(int argc, const char* const* argv) {
  CLI::App app{"The OpenSandbox server", "opensandbox-server"};
  app.set_version_flag("--version", "opensandbox-server, version " OSB_VERSION);
  app.failure_message(CLI::FailureMessage::simple);
  ServeOptions serve;
  bool reload = false;
  app.add_option("--config", serve.config,
                 "configuration file (default: $SANDBOX_CONFIG_PATH, else ~/.sandbox.toml)");
  app.add_flag("--reload", reload, "accepted for compatibility; has no effect");

  CLI::App* init = app.add_subcommand("init-config", "write a configuration file to start from");
  InitConfigOptions options;
  init->add_option("PATH", options.path, "where to write it (default: ~/.sandbox.toml)");
  init->add_option("--example", options.example, "a ready example instead of the commented skeleton")
      ->check(CLI::IsMember({"native", "docker", "docker-zh", "k8s", "k8s-zh"}));
  init->add_flag("--force", options.force, "overwrite an existing file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return stopped(app, e, init->parsed() ? "opensandbox-server init-config" : "opensandbox-server");
  }
  if (init->parsed()) return options;
  return serve;
}

}  // namespace osb::cli
