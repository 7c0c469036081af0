#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "tools.h"

namespace osb::probe {
namespace {

struct Capability {
  const char* name;
  unsigned number;
};
// All but the handful that lets root of a user namespace manage its own files and users.
constexpr Capability kForbidden[] = {
    {"DAC_READ_SEARCH", 2},
    {"LINUX_IMMUTABLE", 9},
    {"NET_BROADCAST", 11},
    {"NET_ADMIN", 12},
    {"NET_RAW", 13},
    {"IPC_LOCK", 14},
    {"IPC_OWNER", 15},
    {"SYS_MODULE", 16},
    {"SYS_RAWIO", 17},
    {"SYS_PTRACE", 19},
    {"SYS_PACCT", 20},
    {"SYS_ADMIN", 21},
    {"SYS_BOOT", 22},
    {"SYS_NICE", 23},
    {"SYS_RESOURCE", 24},
    {"SYS_TIME", 25},
    {"SYS_TTY_CONFIG", 26},
    {"MKNOD", 27},
    {"LEASE", 28},
    {"AUDIT_CONTROL", 30},
    {"MAC_OVERRIDE", 32},
    {"MAC_ADMIN", 33},
    {"SYSLOG", 34},
    {"WAKE_ALARM", 35},
    {"BLOCK_SUSPEND", 36},
    {"AUDIT_READ", 37},
    {"PERFMON", 38},
    {"BPF", 39},
    {"CHECKPOINT_RESTORE", 40},
};

bool in_set(const char* field, unsigned number, const std::string& status) {
  const size_t at = status.find(field);
  if (at == std::string::npos) return true;
  return (std::stoull(status.substr(at + std::string_view(field).size() + 1, 17), nullptr, 16) >> number &
          1) != 0;
}

// What was dropped must not come back by asking.
long raise_all() {
  __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &head, sets) < 0) return -1;
  sets[0].permitted |= 1u << CAP_SYS_ADMIN, sets[0].effective |= 1u << CAP_SYS_ADMIN;
  return ::syscall(SYS_capset, &head, sets);
}

void run(Attempts& a, Args) {
  const std::string status = read_file("/proc/self/status").value_or("");
  for (const Capability& cap : kForbidden) {
    const bool bounding = ::prctl(PR_CAPBSET_READ, cap.number, 0, 0, 0) == 1;
    bool held = false;
    for (const char* set : {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"})
      held = held || in_set(set, cap.number, status);
    if (bounding || held)
      a.got(std::string("CAP_") + cap.name + (held ? " is held" : " is in the bounding set"));
  }
  // Numbers that this list does not know yet.
  for (unsigned number = 41; number < 64; ++number)
    if (::prctl(PR_CAPBSET_READ, number, 0, 0, 0) == 1)
      a.got("capability " + std::to_string(number) + " is held");
  a.call("capset(2)", "SYS_ADMIN", in_child(raise_all));
  a.call("prctl(2)", "ambient SYS_ADMIN",
         in_child([] { return ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0); }));
}

}  // namespace

extern const Probe probe_capabilities = {
    "capabilities", "hold, or regain, capabilities that reach beyond the sandbox's own files", nullptr, run};

}  // namespace osb::probe
