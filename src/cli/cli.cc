#include "cli/cli.h"

#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/attack.h"
#include "cli/block_on.h"
#include "cli/doctor.h"
#include "cli/images.h"
#include "cli/init_config.h"
#include "cli/repl.h"
#include "cli/run.h"
#include "cli/sandboxes.h"
#include "cli/serve.h"
#include "cli/server_role.h"

namespace osb::cli {
namespace {

struct Execute {
  const Embedded& embedded;

  int operator()(PrintAndExit& what) const {
    fmt::print("{}", what.out);
    fmt::print(stderr, "{}", what.err);
    return what.status;
  }
  int operator()(RunOptions& options) const { return block_on(run_in_sandbox(std::move(options))); }
  int operator()(ReplOptions& options) const { return block_on(run_repl(std::move(options))); }
  int operator()(LsOptions& options) const { return block_on(list_sandboxes(std::move(options))); }
  int operator()(RmOptions& options) const { return block_on(remove_sandboxes(std::move(options))); }
  int operator()(DoctorOptions& options) const {
    if (!options.attack) return examine_machine(options);
    return block_on(attack_sandbox(std::move(options), embedded.probe));
  }
  int operator()(ImportImageOptions& options) const { return import_image(options); }
  int operator()(LsImagesOptions& options) const { return list_images(options); }
  int operator()(RmImagesOptions& options) const { return remove_images(options); }
  int operator()(ServerRoleOptions& options) const { return run_server_role(options, embedded); }
  int operator()(ServeOptions& options) const { return become_service(options, embedded); }
  int operator()(InitConfigOptions& options) const { return write_initial_config(options); }
};

}  // namespace

int osb_main(int argc, const char* const* argv, const Embedded& embedded) {
  auto command = parse_osb_arguments(argc, argv);
  return std::visit(Execute{embedded}, command);
}

int opensandbox_server_main(int argc, const char* const* argv, const Embedded& embedded) {
  auto command = parse_server_arguments(argc, argv);
  return std::visit(Execute{embedded}, command);
}

}  // namespace osb::cli
