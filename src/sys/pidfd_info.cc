#include "sys/pidfd_info.h"

#include <sys/ioctl.h>

#include <cstdint>

namespace osb::sys {
namespace {

// struct pidfd_info of <linux/pidfd.h>; the build machine's may be older.
struct PidfdInfo {
  uint64_t mask, cgroup;
  uint32_t pid, tgid, ppid, ids[8];
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kExit = 1 << 3;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

}  // namespace

std::optional<int> exit_status_of(int pidfd) {
  PidfdInfo info{};
  info.mask = kExit;
  if (::ioctl(pidfd, kGetInfo, &info) < 0 || !(info.mask & kExit)) return std::nullopt;
  return info.exit_code;
}

}  // namespace osb::sys
