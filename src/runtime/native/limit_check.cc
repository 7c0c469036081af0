#include "runtime/native/limit_check.h"

#include <sys/resource.h>

#include "launcher/disk.h"

namespace osb::runtime {

std::string limit_obstacle(const Limits& limits, const sys::CgroupLayout& cgroups, bool rootless) {
  using Version = sys::Controller::Version;
  auto refuse = [](const char* key, const std::string& why) {
    return std::string("resourceLimits.") + key + ": " + why;
  };
  constexpr char kRootless[] = "a service without root cannot enforce it; start the service as root";
  if (rootless && limits.io_read_bytes) return refuse("io-read", kRootless);
  if (rootless && limits.io_write_bytes) return refuse("io-write", kRootless);
  if (rootless && limits.disk_bytes) return refuse("disk", kRootless);
  if (limits.io_read_bytes && cgroups.io.version == Version::none)
    return refuse("io-read", "this host has no cgroup controller for it");
  if (limits.io_write_bytes && cgroups.io.version != Version::v2) {
    return refuse(
        "io-write",
        "this host cannot enforce it: only the io controller of cgroup version 2 sees writes that go "
        "through the page cache");
  }
  if (limits.disk_bytes) {
    if (const char* why = launcher::disk_obstacle()) return refuse("disk", why);
  }
  struct rlimit files{};
  if (limits.open_files && ::getrlimit(RLIMIT_NOFILE, &files) == 0 &&
      static_cast<rlim_t>(*limits.open_files) > files.rlim_max) {
    return refuse("nofile", "must be at most " + std::to_string(files.rlim_max) +
                                ", the hard limit of the service on this host");
  }
  return {};
}

}  // namespace osb::runtime
