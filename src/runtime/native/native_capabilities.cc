#include "runtime/native/native_capabilities.h"

#include <sys/resource.h>

#include "launcher/disk.h"

namespace osb::runtime {
namespace {

std::string host_platform() {
#if defined(__aarch64__)
  return "linux/arm64";
#else
  return "linux/amd64";
#endif
}

Capabilities common() {
  Capabilities out;
  out.platforms = {host_platform()};
  struct rlimit files{};
  out.open_files = Ability::can();
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max != RLIM_INFINITY) {
    out.open_files =
        Ability::at_most(static_cast<int64_t>(files.rlim_max), "the hard limit of the service on this host");
  }
  out.network_policy = Ability::can();
  out.secure_access = Ability::can();
  out.volumes = Ability::can();
  out.pools = Ability::can();
  return out;
}

}  // namespace

Capabilities native_capabilities(const sys::CgroupLayout& cgroups) {
  using Version = sys::Controller::Version;
  constexpr char kNoController[] = "this host has no cgroup controller for it";
  auto with = [&](const sys::Controller& controller) {
    return controller.version == Version::none ? Ability::cannot(kNoController) : Ability::can();
  };
  Capabilities out = common();
  out.cpu = with(cgroups.cpu);
  out.memory = with(cgroups.memory);
  out.pids = with(cgroups.pids);
  out.io_read = with(cgroups.io);
  out.io_write = cgroups.io.version == Version::v2
                     ? Ability::can()
                     : Ability::cannot(
                           "this host cannot enforce it: only the io controller of cgroup version 2 sees "
                           "writes that go through the page cache");
  const char* why = launcher::disk_obstacle();
  out.disk = why ? Ability::cannot(why) : Ability::can();
  out.pause = Ability::can();
  out.pull = Ability::can();
  out.snapshots = Ability::can();
  return out;
}

Capabilities rootless_capabilities(const RootlessFacts& facts) {
  constexpr char kRootless[] = "a service without root cannot enforce it; start the service as root";
  constexpr char kNotDelegated[] = "no cgroup controller for it is delegated to the service's user";
  Capabilities out = common();
  out.cpu = facts.limits_cpu ? Ability::can() : Ability::without_effect(kNotDelegated);
  out.memory = facts.limits_memory ? Ability::can() : Ability::without_effect(kNotDelegated);
  out.pids = Ability::can();  // by RLIMIT_NPROC, where there is nothing better
  for (Ability* ability : {&out.io_read, &out.io_write, &out.disk}) *ability = Ability::cannot(kRootless);
  out.pull = Ability::cannot("a service without root keeps no images of its own: their files have owners");
  out.snapshots = Ability::cannot("a service without root makes no snapshots; start the service as root");
  out.pause =
      facts.freezes ? Ability::can() : Ability::cannot("no cgroup is delegated to the service's user");
  return out;
}

}  // namespace osb::runtime
