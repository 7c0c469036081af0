#include "runtime/native/plan.h"

namespace osb::runtime {
namespace {

using launcher::Step;

// Information about the host, or switches of it, that no program in a sandbox needs.
constexpr const char* kMasked[] = {"/proc/acpi",
                                   "/proc/asound",
                                   "/proc/interrupts",
                                   "/proc/kcore",
                                   "/proc/keys",
                                   "/proc/latency_stats",
                                   "/proc/sched_debug",
                                   "/proc/scsi",
                                   "/proc/timer_list",
                                   "/sys/firmware",
                                   "/sys/devices/virtual/powercap"};
constexpr const char* kReadOnly[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                     "/proc/sysrq-trigger"};

Step step(Step::Kind kind, std::string target) {
  Step s;
  s.kind = kind;
  s.target = std::move(target);
  return s;
}

}  // namespace

launcher::Plan make_plan(const SandboxSpec& spec, const ImageRoot& image, const Limits& limits) {
  launcher::Plan plan;
  plan.id = spec.handle;
  plan.image = image.id;
  plan.record = spec.record;
  plan.limits = {limits.cpu_millis,    limits.memory_bytes,   limits.pids,
                 limits.io_read_bytes, limits.io_write_bytes, {}};
  plan.disk_bytes = limits.disk_bytes;
  plan.open_files = limits.open_files;

  Step root = step(Step::Kind::overlay, "/");
  root.name = "root";
  root.lowers = image.lowers;
  plan.steps.push_back(std::move(root));
  for (const auto& [target, lower] : image.trees) {
    Step tree = step(Step::Kind::overlay, target);
    tree.name = target.substr(1);
    tree.lowers = {lower};
    plan.steps.push_back(std::move(tree));
  }
  for (const auto& [target, source] : image.views) {
    Step view = step(Step::Kind::bind, target);
    view.source = source;
    plan.steps.push_back(std::move(view));
  }
  plan.steps.push_back(step(Step::Kind::proc, "/proc"));
  plan.steps.push_back(step(Step::Kind::sysfs, "/sys"));
  plan.steps.push_back(
      step(Step::Kind::devices, "/dev"));  // before the masks: they cover files with /dev/null
  for (const char* path : kReadOnly) plan.steps.push_back(step(Step::Kind::read_only, path));
  for (const char* path : kMasked) plan.steps.push_back(step(Step::Kind::mask, path));
  if (limits.cpu_millis || limits.memory_bytes) plan.steps.push_back(step(Step::Kind::show_limits, ""));
  Step hostname = step(Step::Kind::hostname, "");
  hostname.name = "sandbox";
  plan.steps.push_back(std::move(hostname));
  if (spec.read_only_root) {
    for (const char* path : {"/tmp", "/run"}) plan.steps.push_back(step(Step::Kind::scratch, path));
    for (const auto& [target, lower] : image.trees) plan.steps.push_back(step(Step::Kind::seal, target));
    plan.steps.push_back(step(Step::Kind::seal, "/"));
  }
  return plan;
}

}  // namespace osb::runtime
