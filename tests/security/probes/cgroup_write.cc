#include <sys/stat.h>

#include "tools.h"

namespace osb::probe {
namespace {

// Opened, never written: the kill and freeze files act at the first byte.
constexpr const char* kKnobs[] = {
    "cgroup.procs",
    "tasks",
    "cgroup.subtree_control",
    "cgroup.kill",
    "cgroup.freeze",
    "memory.limit_in_bytes",
    "memory.max",
    "pids.max",
    "cpu.cfs_quota_us",
    "cpu.max",
    "devices.allow",
    "freezer.state",
    "notify_on_release",
    "cgroup.max.descendants",
};

void attempt(Attempts& a, const std::string& group) {
  const std::string child = group + "/osb-probe-" + std::to_string(::getpid());
  if (a.call("mkdir(2)", "in " + group, ::mkdir(child.c_str(), 0755))) ::rmdir(child.c_str());
  for (const char* knob : kKnobs) {
    const std::string path = group + "/" + knob;
    if (::access(path.c_str(), F_OK) == 0) a.call("open", path + " for writing", writable(path));
  }
}

void run(Attempts& a, Args) {
  bool any = false;
  for (const MountEntry& entry : mounts()) {
    if (!entry.type.starts_with("cgroup")) continue;
    any = true;
    attempt(a, entry.point);
  }
  // Groups may also be shown through binds or copies: whatever lies there must not take new groups or values.
  attempt(a, "/sys/fs/cgroup");
  for (const std::string& name : list_directory("/sys/fs/cgroup"))
    if (struct stat about; ::stat(("/sys/fs/cgroup/" + name).c_str(), &about) == 0 && S_ISDIR(about.st_mode))
      attempt(a, "/sys/fs/cgroup/" + name);
  if (!any) a.stopped("no cgroup file system is mounted here");
}

}  // namespace

extern const Probe probe_cgroup_write = {"cgroup_write", "change limits or make groups in cgroup v1 and v2",
                                         nullptr, run};

}  // namespace osb::probe
