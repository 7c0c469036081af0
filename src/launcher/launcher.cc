#include "launcher/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "launcher/egress_process.h"
#include "launcher/identity.h"
#include "launcher/loop.h"
#include "launcher/rootless.h"
#include "launcher/sandboxes.h"
#include "launcher/server_process.h"
#include "launcher/state_dir.h"
#include "sys/cgroup_delegation.h"

namespace osb::launcher {
namespace {

// A sandbox's execd gets descriptors 0 to 5, put in place over whatever its process has there while it still
// needs others (child.cc): nothing of ours may ever sit there.
Result<void> reserve_low_descriptors(Settings& settings) {
  for (int* fd : {&settings.listener_fd, &settings.server_fd, &settings.execd_fd, &settings.runsc_fd,
                  &settings.egress_fd, &settings.notes_fd}) {
    if (*fd < 0) continue;  // no egress process, no runsc, no notes
    int moved = ::fcntl(*fd, F_DUPFD_CLOEXEC, 16);
    if (moved < 0) return fail_errno("take over descriptor " + std::to_string(*fd));
    ::close(*fd);
    *fd = moved;
  }
  for (int fd = 0; fd < 6; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 && fd < 3) continue;
    int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) return fail_errno("open /dev/null");
    if (null != fd) {
      ::dup3(null, fd, O_CLOEXEC);
      ::close(null);
    }
  }
  return {};
}

Result<sys::CgroupTree> open_cgroups(const Settings& settings, const std::string& name) {
  if (settings.rootless) return rootless_cgroups(name);
  if (settings.engine_only)
    return sys::CgroupTree::none(sys::Weakening{"sandboxes of this service's own",
                                                "it has no rights to make any; an engine has them"});
  auto layout = TRY(sys::CgroupLayout::detect());
  if (auto favoured = sys::favour_group_changes(layout); !favoured) {
    log::warn("creates will be slower", {{"reason", favoured.error().message}});
  }
  return sys::CgroupTree::open(std::move(layout), name);
}

Result<int> open_and_run(Settings& settings) {
  TRY(reserve_low_descriptors(settings));
  struct rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(022);
  StateDir state = TRY(StateDir::open(settings));
  settings.server.push_back("--identity=" + fingerprint(state.identity()));
  const std::string& name = state.identity().group;
  auto cgroups = TRY(open_cgroups(settings, name));
  if (settings.rootless && cgroups.exists()) settings.server.push_back("--cgroups=" + abilities(cgroups));
  Sandboxes sandboxes = TRY(Sandboxes::open(settings, state, cgroups));
  std::vector<ServiceSpec> services = {server_service(settings)};
  EgressDescriptors egress;
  if (!settings.egress.empty()) {
    egress = TRY(open_egress_descriptors(settings, state));
    services.push_back(egress_service(settings, egress, sandboxes.callers()));
  }
  int status = Loop(std::move(services), sandboxes).run();
  state.remove_socket(kEgressSocketName, kEgressSocketSuffix);
  sandboxes.leave();
  state.leave();
  return status;
}

}  // namespace

int run(Settings settings) {
  log::set_role("launcher");
  ::prctl(PR_SET_NAME, "osb-launcher");
  auto status = open_and_run(settings);
  if (!status) {
    log::error("cannot start", {{"error", status.error().message}});
    return 1;
  }
  return *status;
}

}  // namespace osb::launcher
