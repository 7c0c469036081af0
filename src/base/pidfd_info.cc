#include "base/pidfd_info.h"

#include <sys/ioctl.h>

#include <cerrno>
#include <cstdint>

namespace osb {
namespace {

// struct pidfd_info of <linux/pidfd.h>, as far as it is needed; the build machine's may be older.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroupid;
  uint32_t pid, tgid, ppid;
  uint32_t ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kExit = 1u << 3;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

}  // namespace

std::optional<int> exit_status_of(int pidfd) {
  PidfdInfo info{};
  info.mask = kExit;
  if (::ioctl(pidfd, kGetInfo, &info) < 0) return std::nullopt;
  errno = 0;
  return (info.mask & kExit) ? std::optional(info.exit_code) : std::nullopt;
}

}  // namespace osb
