// The command line of opensandbox-server; that of osb is in arguments.cc.

#include "cli/usage.h"

namespace osb::cli {

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
  // What other servers have and users of them type: told in words, not by a list of words that are not
  // expected.
  CLI::App* migrate = app.add_subcommand("migrate-snapshots", "of other servers; not here")->group("");
  migrate->allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return stopped(app, e, init->parsed() ? "opensandbox-server init-config" : "opensandbox-server");
  }
  if (migrate->parsed()) {
    return usage(
        "migrate-snapshots copies to PostgreSQL, and this build keeps its state in SQLite only; nothing was "
        "done",
        "opensandbox-server");
  }
  if (init->parsed()) return options;
  return serve;
}

}  // namespace osb::cli
