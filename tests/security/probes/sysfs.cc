#include "tools.h"

namespace osb::probe {
namespace {

constexpr const char* kDangerous[] = {
    "kernel/uevent_helper",
    "kernel/uevent_seqnum",
    "kernel/mm/ksm/run",
    "kernel/mm/transparent_hugepage/enabled",
    "kernel/kexec_crash_size",
    "kernel/profiling",
    "kernel/rcu_expedited",
    "power/state",
    "power/disk",
    "module/kernel/parameters/panic",
    "devices/system/cpu/cpu1/online",
    "bus/pci/rescan",
    "class/net/lo/mtu",
    "firmware/efi/vars/new_var",
};

void run(Attempts& a, Args) {
  bool open_somewhere = false;
  for (const char* name : kDangerous) {
    const std::string path = std::string("/sys/") + name;
    open_somewhere = a.call("open", path + " for writing", writable(path)) || open_somewhere;
  }
  if (open_somewhere) return;
  walk("/sys", 10, [&](const std::string& path) {
    const Answer answer = writable(path);
    if (answer.worked()) a.got("may write " + path);
    return !answer.worked();
  });
}

}  // namespace

extern const Probe probe_sysfs = {"sysfs", "open any file below /sys for writing (uevent_helper, ...)",
                                  nullptr, run};

}  // namespace osb::probe
