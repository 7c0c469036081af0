#include "runtime/native/isolation.h"

#include <unistd.h>

#include "launcher/disk.h"

namespace osb::runtime {

Isolation native_isolation(const sys::CgroupLayout& cgroups) {
  using Version = sys::Controller::Version;
  // The launcher makes a sandbox in this way or not at all: no step of it is optional.
  Isolation out{
      .tier =
          "root service: mount, pid, network, ipc, uts and cgroup namespaces owned by the host, user "
          "namespace entered last with ids of its own, idmapped layers, capabilities dropped, seccomp, "
          "no_new_privs"};
  auto miss = [&](std::string what) { out.missing.push_back(std::move(what)); };
  struct Kind {
    const char* name;
    const sys::Controller& controller;
  };
  for (auto& [name, controller] : {Kind{"cpu", cgroups.cpu}, Kind{"memory", cgroups.memory},
                                   Kind{"pids", cgroups.pids}, Kind{"io", cgroups.io}}) {
    if (controller.version == Version::none)
      miss(std::string(name) + " cannot be limited: no cgroup controller");
    if (controller.version == Version::v1) miss(std::string(name) + " is limited through cgroup version 1");
  }
  if (cgroups.io.version == Version::v1)
    miss("the speed of writes cannot be limited: that needs cgroup version 2");
  if (const char* why = launcher::disk_obstacle())
    miss(std::string("the size of the disk cannot be limited: ") + why);
  if (::access("/proc/keys", F_OK) < 0) miss("the kernel has no keyrings; there are none to separate");
  return out;
}

}  // namespace osb::runtime
