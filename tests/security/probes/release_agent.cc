#include <sys/mount.h>

#include "tools.h"

namespace osb::probe {
namespace {

// The v1 release agent is a program that the kernel runs as the host's root. Mounting a hierarchy is the
// first half of the trick; writing the agent's name (here: the name that is there) the second.
void run(Attempts& a, Args) {
  Scratch scratch;
  if (scratch.ok()) {
    for (const char* options : {"none,name=osbprobe", "rdma", "memory", "cpuset", "devices"}) {
      if (!a.call("mount(2)", std::string("cgroup ") + options,
                  ::mount("cgroup", scratch.path(), "cgroup", 0, options)))
        continue;
      if (std::string_view(options).starts_with("none"))
        a.call("write(2)", "release_agent of a new hierarchy", rewrite(scratch / "release_agent"));
      ::umount2(scratch.path(), MNT_DETACH);
    }
    if (a.call("mount(2)", "cgroup2", ::mount("cgroup2", scratch.path(), "cgroup2", 0, nullptr)))
      ::umount2(scratch.path(), MNT_DETACH);
  }
  for (const std::string& name : list_directory("/sys/fs/cgroup")) {
    const std::string agent = "/sys/fs/cgroup/" + name + "/release_agent";
    if (::access(agent.c_str(), F_OK) == 0) a.call("open", "release_agent for writing", writable(agent));
  }
}

}  // namespace

extern const Probe probe_release_agent = {
    "release_agent", "mount a cgroup hierarchy and set the program it runs on the host (release_agent)",
    nullptr, run};

}  // namespace osb::probe
