#include "cli/egress_role.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include <csignal>

#include "base/log.h"
#include "cli/block_on.h"
#include "egress/daemon.h"
#include "launcher/egress_process.h"

namespace osb::cli {
namespace {

Result<Fd> inherited(int fd) {
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return fail_errno("descriptor " + std::to_string(fd));
  return Fd(fd);
}

Result<egress::DaemonOptions> daemon_options(const EgressRoleOptions& options) {
  egress::DaemonOptions out;
  for (const std::string& server : options.name_servers)
    out.name_servers.push_back(TRY(egress::parse_name_server(server)));
  for (const std::string& target : options.deny)
    out.overlay.deny.push_back(TRY(egress::make_rule("deny", target)));
  for (const std::string& target : options.allow)
    out.overlay.allow.push_back(TRY(egress::make_rule("allow", target)));
  out.listener = TRY(inherited(launcher::kEgressListenerFd));
  out.launcher = TRY(inherited(launcher::kEgressLauncherFd));
  out.directory = TRY(inherited(launcher::kEgressDirectoryFd));
  return out;
}

io::Task<int> serve(egress::DaemonOptions options) {
  auto served = co_await egress::run(std::move(options));
  if (served) co_return 0;
  log::error(served.error().message);
  co_return 1;
}

}  // namespace

int run_egress_role(const EgressRoleOptions& options) {
  log::set_role("egress");
  ::prctl(PR_SET_NAME, "osb-egress");
  log::set_level(log::level_from(options.log_level));
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  auto daemon = daemon_options(options);
  if (!daemon) {
    log::error(daemon.error().message);
    return launcher::kCannotStart;
  }
  return block_on(serve(std::move(*daemon)));
}

}  // namespace osb::cli
