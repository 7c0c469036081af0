#include "launcher/system_steps.h"

namespace osb::launcher {
namespace {

// Switches of the host.
constexpr const char* kReadOnly[] = {"/proc/sys", "/proc/sysrq-trigger"};
// What tells of the host or of other sandboxes, or switches something, and no program in a sandbox needs:
// hardware, the kernel's command line (people put secrets there), disks and file systems by name (those of
// other sandboxes are among them), paths of swap files, keys, what other processes wait for.
constexpr const char* kMasked[] = {"/proc/acpi",   "/proc/asound",     "/proc/bootconfig",
                                   "/proc/bus",    "/proc/cmdline",    "/proc/diskstats",
                                   "/proc/fs",     "/proc/interrupts", "/proc/irq",
                                   "/proc/kcore",  "/proc/keys",       "/proc/latency_stats",
                                   "/proc/mdstat", "/proc/partitions", "/proc/sched_debug",
                                   "/proc/scsi",   "/proc/swaps",      "/proc/timer_list"};

Step step(Step::Kind kind, const char* target) {
  Step s;
  s.kind = kind;
  s.target = target;
  return s;
}

std::vector<Step> make() {
  std::vector<Step> steps = {step(Step::Kind::proc, "/proc"), step(Step::Kind::sysfs, "/sys"),
                             // Before the masks: they cover files with its null device.
                             step(Step::Kind::devices, "/dev")};
  for (const char* path : kReadOnly) steps.push_back(step(Step::Kind::read_only, path));
  for (const char* path : kMasked) steps.push_back(step(Step::Kind::mask, path));
  return steps;
}

}  // namespace

const std::vector<Step>& system_steps() {
  static const std::vector<Step> kSteps = make();
  return kSteps;
}

}  // namespace osb::launcher
