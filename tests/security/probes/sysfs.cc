#include <sys/stat.h>

#include <algorithm>

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

// Paths of the host, and numbers that are one machine's alone.
constexpr std::string_view kTelling[] = {
    "backing_file", "product_uuid", "product_serial", "board_serial", "chassis_serial", "serial", "wwid"};

// The kernel keeps what is not for everybody from everybody but its owner, who is nobody in here.
bool is_for_nobody_else(const std::string& path) {
  struct stat about;
  return ::lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && (about.st_mode & 0444) != 0 &&
         (about.st_mode & 0004) == 0;
}

void look_at(Attempts& a, const std::string& path, size_t* read) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  const bool telling = std::ranges::find(kTelling, name) != std::end(kTelling);
  if (!telling && !is_for_nobody_else(path)) return;
  ++*read;
  const auto text = read_file(path, 4096);
  if (text && text->find_first_not_of(" \n") != std::string::npos) a.got("reads " + path);
}

void run(Attempts& a, Args) {
  bool open_somewhere = false;
  for (const char* name : kDangerous) {
    const std::string path = std::string("/sys/") + name;
    open_somewhere = a.call("open", path + " for writing", writable(path)) || open_somewhere;
  }
  if (open_somewhere) return;
  size_t tried = 0, all = 0;
  walk("/sys", 12, [&](const std::string& path) {
    ++all;
    look_at(a, path, &tried);
    const Answer answer = writable(path);
    if (answer.worked()) a.got("may write " + path);
    return !answer.worked();
  });
  a.stopped("none of " + std::to_string(all) + " files can be written, none of " + std::to_string(tried) +
            " that are not for everybody read");
}

}  // namespace

extern const Probe probe_sysfs = {
    "sysfs", "open any file below /sys for writing (uevent_helper, ...), read what names files and machines",
    nullptr, run};

}  // namespace osb::probe
