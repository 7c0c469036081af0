#include "cli/cli.h"

#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/attack.h"
#include "cli/block_on.h"
#include "cli/build.h"
#include "cli/commit.h"
#include "cli/doctor.h"
#include "cli/exec.h"
#include "cli/forward.h"
#include "cli/image_roles.h"
#include "cli/images.h"
#include "cli/init_config.h"
#include "cli/manage.h"
#include "cli/mcp.h"
#include "cli/occasion_keeper.h"
#include "cli/pools.h"
#include "cli/repl.h"
#include "cli/run.h"
#include "cli/sandboxes.h"
#include "cli/serve.h"
#include "cli/server_images.h"
#include "cli/server_role.h"
#include "cli/shell.h"
#include "cli/skills.h"
#include "cli/snapshots.h"
#include "cli/volumes.h"

namespace osb::cli {
namespace {

struct Execute {
  const Embedded& embedded;

  int operator()(PrintAndExit& what) const {
    fmt::print("{}", what.out);
    fmt::print(stderr, "{}", what.err);
    return what.status;
  }
  int operator()(Action& action) const { return action.run(embedded); }
  int operator()(RunOptions& options) const { return block_on(run_in_sandbox(std::move(options))); }
  int operator()(ReplOptions& options) const { return block_on(run_repl(std::move(options))); }
  int operator()(RmOptions& options) const { return block_on(remove_sandboxes(std::move(options))); }
  int operator()(DoctorOptions& options) const {
    if (!options.attack) return examine_machine(options);
    return block_on(attack_sandbox(std::move(options), embedded.probe));
  }
  int operator()(ImportImageOptions& options) const { return import_image(options); }
  int operator()(LsImagesOptions& options) const {
    return options.connection ? block_on(list_server_images(std::move(options))) : list_images(options);
  }
  int operator()(RmImagesOptions& options) const {
    return options.connection ? block_on(remove_server_images(std::move(options))) : remove_images(options);
  }
  int operator()(PullImageOptions& options) const { return block_on(pull_image(std::move(options))); }
  int operator()(PushImageOptions& options) const { return block_on(push_image(std::move(options))); }
  int operator()(InspectImageOptions& options) const { return block_on(inspect_image(std::move(options))); }
  int operator()(PruneImagesOptions& options) const { return block_on(prune_images(std::move(options))); }
  int operator()(BuildImageOptions& options) const { return block_on(build_image(std::move(options))); }
  int operator()(CommitImageOptions& options) const { return block_on(commit_image(std::move(options))); }
  int operator()(SnapshotOptions& options) const { return block_on(run_snapshots(std::move(options))); }
  int operator()(VolumeOptions& options) const { return block_on(run_volumes(std::move(options))); }
  int operator()(PoolOptions& options) const { return block_on(run_pools(std::move(options))); }
  int operator()(ExecOptions& options) const { return block_on(run_in_existing(std::move(options))); }
  int operator()(ShellOptions& options) const { return block_on(open_shell(std::move(options))); }
  int operator()(ManageOptions& options) const { return block_on(manage_sandbox(std::move(options))); }
  int operator()(ForwardOptions& options) const { return block_on(forward_ports(std::move(options))); }
  int operator()(PreviewOptions& options) const { return block_on(print_preview(std::move(options))); }
  int operator()(McpOptions& options) const { return block_on(serve_mcp(std::move(options))); }
  int operator()(SkillsOptions& options) const { return run_skills(options); }
  int operator()(ServerRoleOptions& options) const { return run_server_role(options, embedded); }
  int operator()(ImageKeeperOptions& options) const { return run_image_keeper(options); }
  int operator()(ImageFetcherOptions&) const { return run_image_fetcher(); }
  int operator()(ServeOptions& options) const { return become_service(options, embedded); }
  int operator()(OccasionOptions& options) const { return keep_occasion(options, embedded); }
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
