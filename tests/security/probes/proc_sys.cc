#include "tools.h"

namespace osb::probe {
namespace {

constexpr const char* kDangerous[] = {
    "kernel/core_pattern",
    "kernel/modprobe",
    "kernel/hotplug",
    "kernel/poweroff_cmd",
    "kernel/sysrq",
    "kernel/panic",
    "kernel/hostname",
    "kernel/ns_last_pid",
    "kernel/randomize_va_space",
    "kernel/unprivileged_bpf_disabled",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "vm/mmap_min_addr",
    "fs/suid_dumpable",
    "fs/protected_symlinks",
    "fs/file-max",
    "fs/binfmt_misc/register",
    "fs/binfmt_misc/status",
    "user/max_user_namespaces",
    "net/ipv4/ip_forward",
    "net/ipv4/ping_group_range",
    "net/ipv4/conf/all/route_localnet",
};

void run(Attempts& a, Args) {
  bool open_somewhere = false;
  for (const char* name : kDangerous) {
    const std::string path = std::string("/proc/sys/") + name;
    open_somewhere = a.call("open", path + " for writing", writable(path)) || open_somewhere;
  }
  if (open_somewhere) return;
  walk("/proc/sys", 8, [&](const std::string& path) {
    const Answer answer = writable(path);
    if (answer.worked()) a.got("may write " + path);
    return !answer.worked();
  });
}

}  // namespace

extern const Probe probe_proc_sys = {
    "proc_sys", "open any file below /proc/sys for writing (core_pattern, modprobe, ...)", nullptr, run};

}  // namespace osb::probe
