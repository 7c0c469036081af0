#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "tools.h"

namespace osb::probe {
namespace {

// What /proc may show beside processes: what programs need, and what the kernel itself blanks or refuses for
// everybody without rights over the machine. Whatever else is there, of this kernel or of a later one, must
// show nothing.
constexpr std::string_view kShown[] = {"buddyinfo",     "cgroups",     "config.gz",
                                       "consoles",      "cpuinfo",     "crypto",
                                       "devices",       "dma",         "driver",
                                       "execdomains",   "fb",          "filesystems",
                                       "iomem",         "ioports",     "kallsyms",
                                       "key-users",     "kmsg",        "kpagecgroup",
                                       "kpagecount",    "kpageflags",  "loadavg",
                                       "locks",         "lockdep",     "lockdep_chains",
                                       "lockdep_stats", "lock_stat",   "meminfo",
                                       "misc",          "modules",     "mounts",
                                       "mtrr",          "net",         "pagetypeinfo",
                                       "pressure",      "self",        "slabinfo",
                                       "softirqs",      "stat",        "sys",
                                       "sysvipc",       "thread-self", "tty",
                                       "uptime",        "version",     "version_signature",
                                       "vmallocinfo",   "vmstat",      "zoneinfo"};

constexpr const char* kMasked[] = {
    "/proc/kcore",
    "/proc/keys",
    "/proc/sysrq-trigger",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
    "/sys/kernel/security",
    "/sys/fs/bpf",
    "/sys/fs/pstore",
};

bool is_shown(std::string_view name) {
  return std::ranges::find(kShown, name) != std::end(kShown) ||
         name.find_first_not_of("0123456789") == std::string_view::npos;
}

struct Device {
  const char* path;
  unsigned major, minor;
};
constexpr Device kDevices[] = {{"/dev/null", 1, 3},   {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
                               {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0}};

void check_mask(Attempts& a, const std::string& name) {
  const char* path = name.c_str();
  struct stat about;
  if (::lstat(path, &about) < 0) return void(a.call("stat", path, -1));
  if (S_ISLNK(about.st_mode))
    return a.got(std::string(path) + " is a symbolic link: the mask went elsewhere");
  if (S_ISCHR(about.st_mode)) {
    if (about.st_rdev == makedev(1, 3)) return a.stopped("masked by the null device", path);
    return a.got(std::string(path) + " is covered by a device other than null");
  }
  if (S_ISDIR(about.st_mode)) {
    if (list_directory(path).empty()) return a.stopped("an empty directory", path);
    return a.got(std::string(path) + " shows its content");
  }
  File file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  char byte;
  if (!file.ok()) return void(a.call("open", path, -1));
  if (::read(file.fd(), &byte, 1) > 0) return a.got(std::string(path) + " can be read");
  a.stopped("nothing to read", path);
}

// CVE-2025-31133 and its siblings begin with a link where the runtime expects a device: the mask, or the
// console, is then mounted wherever the link points. Tried here with a link to core_pattern; what gives way
// is put back.
void swap_device(Attempts& a, const char* path) {
  constexpr unsigned kExchange = 1u << 1;
  const char* link = "/dev/osb-probe-link";
  if (::symlink("/proc/sys/kernel/core_pattern", link) < 0) return void(a.call("symlink(2)", "in /dev", -1));
  const Answer swapped(::syscall(SYS_renameat2, AT_FDCWD, link, AT_FDCWD, path, kExchange));
  if (swapped.worked()) {
    a.call("open", std::string(path) + " as a link to core_pattern", writable(path));
    ::syscall(SYS_renameat2, AT_FDCWD, link, AT_FDCWD, path, kExchange);
  } else {
    a.call("rename(2)", path, swapped);
  }
  ::unlink(link);
}

// There is one devtmpfs for the whole machine: to exchange its /dev/null would exchange everybody's.
bool devices_are_the_hosts() {
  bool top_is = false;
  for (const MountEntry& entry : mounts())
    if (entry.point == "/dev") top_is = entry.type == "devtmpfs";
  return top_is;
}

void run(Attempts& a, Args) {
  if (devices_are_the_hosts())
    a.got("/dev is the host's devtmpfs");
  else
    for (const char* path : {"/dev/null", "/dev/console"}) swap_device(a, path);
  for (const Device& device : kDevices) {
    struct stat about;
    if (::lstat(device.path, &about) < 0) continue;
    if (!S_ISCHR(about.st_mode) || about.st_rdev != makedev(device.major, device.minor))
      a.got(std::string(device.path) + " is not the device it is named for");
  }
  for (const std::string& name : list_directory("/proc"))
    if (!is_shown(name)) check_mask(a, "/proc/" + name);
  for (const char* path : kMasked) check_mask(a, path);
}

}  // namespace

extern const Probe probe_masked_paths = {
    "masked_paths", "see through masked paths, or bend a mask with a link (class of CVE-2025-31133)", nullptr,
    run};

}  // namespace osb::probe
