#include "sys/cgroup_limits.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/strings.h"
#include "sys/cgroup_delegation.h"
#include "sys/spent_groups.h"
#include "sys/weakening.h"

namespace osb::sys {
namespace {

using Version = Controller::Version;

constexpr int64_t kCpuPeriodMicros = 100'000;
// What the daemon has for itself in each period: two of the slices in which the kernel gives out quota.
constexpr int64_t kDaemonMicros = 10'000;

Result<void> apply(const std::string& group, const std::string& file, int64_t value) {
  return in_context("limit", write_file(group + "/" + file, std::to_string(value)));
}

Result<void> set_quota(const std::string& group, Controller::Version version, int64_t micros) {
  if (version == Controller::Version::v2)
    return write_file(group + "/cpu.max", std::to_string(micros) + " " + std::to_string(kCpuPeriodMicros));
  TRY(apply(group, "cpu.cfs_period_us", kCpuPeriodMicros));
  return apply(group, "cpu.cfs_quota_us", micros);
}

}  // namespace

Result<void> check_enforceable(const CgroupLimits& limits, const CgroupLayout& layout) {
  auto missing = [](const char* what) {
    return fail(Code::unsupported, std::string("no cgroup controller here can limit ") + what);
  };
  if (limits.cpu_millis && layout.cpu.version == Version::none) return missing("cpu");
  if (limits.memory_bytes && layout.memory.version == Version::none) return missing("memory");
  if (limits.pids && layout.pids.version == Version::none) return missing("pids");
  if (limits.limits_io() && layout.io.version == Version::none) return missing("io");
  if (limits.io_write_bytes && layout.io.version != Version::v2) return missing("writes");
  return {};
}

Result<std::string> disk_of(dev_t device) {
  std::string numbers = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::string entry = "/sys/dev/block/" + numbers;
  if (major(device) == 0 || ::access(entry.c_str(), F_OK) < 0)
    return fail(Code::unsupported, "the file system is not on one disk");
  if (::access((entry + "/partition").c_str(), F_OK) < 0) return numbers;
  return std::string(trim(TRY(read_file(entry + "/../dev"))));
}

Result<void> limit_memory(const std::string& group, Version version, int64_t bytes) {
  bool v1 = version == Version::v1;
  // Before the one with swap: version 1 takes no sum that is below the limit on memory.
  TRY(apply(group, v1 ? "memory.limit_in_bytes" : "memory.max", bytes));
  // Without this a limited sandbox would push its excess into swap.
  auto swap = v1 ? apply(group, "memory.memsw.limit_in_bytes", bytes) : apply(group, "memory.swap.max", 0);
  TRY(tolerate(
      std::move(swap), {Code::not_found},
      Weakening{"a limit on swapped memory",
                "a kernel that does not account swap; memory itself is limited, and isolation says so"}));
  // Version 1 counts the buffers of sockets apart, those of UDP too; version 2 with everything else.
  if (!v1) return {};
  return tolerate(apply(group, "memory.kmem.tcp.limit_in_bytes", bytes), {Code::not_found},
                  Weakening{"a limit on the buffers of sockets",
                            "a kernel that does not count them; memory itself is limited"});
}

Result<void> limit_processes(const std::string& group, int64_t most) {
  return apply(group, "pids.max", most);
}

Result<void> limit_io(const std::string& group, Version version, const CgroupLimits& limits) {
  bool v1 = version == Version::v1;
  for (const std::string& disk : limits.disks) {
    std::string line = disk;
    if (v1) {
      // Reads only, and so there are some: check_enforceable() has refused writes.
      line += " " + std::to_string(*limits.io_read_bytes);
    } else {
      if (limits.io_read_bytes) line += " rbps=" + std::to_string(*limits.io_read_bytes);
      if (limits.io_write_bytes) line += " wbps=" + std::to_string(*limits.io_write_bytes);
    }
    TRY(in_context("limit the speed of disk " + disk,
                   write_file(group + (v1 ? "/blkio.throttle.read_bps_device" : "/io.max"), line)));
  }
  return {};
}

Result<CpuGroups> limit_cpu(const std::string& group, Version version, int64_t millis) {
  bool v2 = version == Version::v2;
  std::string work = group + "/" + kWork;
  TRY(make_group(work));
  if (v2) {
    // Before there are children of another type: only then may the group above keep processes.
    TRY(write_file(work + "/cgroup.type", "threaded"));
    TRY(write_file(group + "/cgroup.subtree_control", "+cpu"));
  }
  int64_t quota = millis * kCpuPeriodMicros / 1000;
  // From above: in version 1 no group may have more than the one it is in.
  TRY(set_quota(group, version, quota + kDaemonMicros));
  TRY(set_quota(work, version, quota));
  const char* file = v2 ? "/cgroup.threads" : "/tasks";
  CpuGroups groups;
  groups.daemon = TRY(open_at(AT_FDCWD, group + file, O_WRONLY));
  groups.work = TRY(open_at(AT_FDCWD, work + file, O_WRONLY));
  return groups;
}

}  // namespace osb::sys
