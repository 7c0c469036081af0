#include "sys/caps.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace osb::sys {
namespace {

constexpr uint64_t bit(int cap) { return uint64_t{1} << cap; }

// What package managers, daemons and test suites need over files and processes that belong to the sandbox's
// own ids. Not here, and why it matters: SYS_ADMIN (mounts in a namespace of its own), SYS_PTRACE (execd),
// NET_ADMIN and NET_RAW (the policy of the network namespace), MKNOD, SYS_MODULE, SYS_RAWIO, SYS_TIME,
// SYS_BOOT, BPF, PERFMON, ...
constexpr uint64_t kKept = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_FOWNER) | bit(CAP_FSETID) |
                           bit(CAP_KILL) | bit(CAP_SETGID) | bit(CAP_SETUID) | bit(CAP_SETPCAP) |
                           bit(CAP_NET_BIND_SERVICE) | bit(CAP_SYS_CHROOT) | bit(CAP_SETFCAP);

uint64_t bits(std::initializer_list<int> capabilities) {
  uint64_t all = 0;
  for (int capability : capabilities) all |= bit(capability);
  return all;
}

int set(uint64_t kept) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  for (int i = 0; i < 2; ++i) {
    uint32_t word = static_cast<uint32_t>(kept >> (32 * i));
    data[i] = {word, word, 0};
  }
  return ::syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

// Leaves exactly these everywhere.
int keep_only(uint64_t kept) {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0) return -errno;
  // Before the set itself is cut: dropping from the bounding set takes CAP_SETPCAP.
  for (int cap = 0; cap <= 63; ++cap) {
    if (kept & bit(cap)) continue;
    if (::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
      if (errno == EINVAL) break;  // past the last capability of this kernel
      return -errno;
    }
  }
  return set(kept);
}

}  // namespace

bool has_capability(int capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &header, data) < 0) return false;
  return ((data[capability / 32].effective >> (capability % 32)) & 1) != 0;
}

int set_capabilities(std::initializer_list<int> capabilities) { return set(bits(capabilities)); }

int keep_capabilities(std::initializer_list<int> capabilities) { return keep_only(bits(capabilities)); }

int raise_permitted_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &header, data) < 0) return -errno;
  for (auto& part : data) part.effective = part.permitted;
  return ::syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int drop_capabilities(std::initializer_list<int> besides) { return keep_only(kKept & ~bits(besides)); }

int drop_all_capabilities() {
  constexpr unsigned long kNeverByRoot =
      SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  if (::prctl(PR_SET_SECUREBITS, kNeverByRoot, 0, 0, 0) < 0) return -errno;
  return keep_only(0);
}

}  // namespace osb::sys
