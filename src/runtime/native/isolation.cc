#include "runtime/native/isolation.h"

#include <unistd.h>

#include "base/fd.h"
#include "base/strings.h"
#include "launcher/disk.h"

namespace osb::runtime {
namespace {

bool has_swap() {
  std::string text = read_file("/proc/swaps").value_or("");
  return split(trim(text), '\n').size() > 1;  // the first line is a heading
}

bool limits_swap(const sys::CgroupLayout& cgroups) {
  bool v1 = cgroups.memory.version == sys::Controller::Version::v1;
  // Version 2 has the file in every group but the root, and only with accounting.
  return !v1 || ::access((cgroups.memory.mount + "/memory.memsw.limit_in_bytes").c_str(), F_OK) == 0;
}

}  // namespace

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
  if (cgroups.memory.version != Version::none && has_swap() && !limits_swap(cgroups))
    miss("memory that is swapped out is not limited: the kernel does not account swap");
  if (::access("/proc/keys", F_OK) < 0) miss("the kernel has no keyrings; there are none to separate");
  return out;
}

}  // namespace osb::runtime
