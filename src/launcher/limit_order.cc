#include "launcher/limit_order.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "sys/mount.h"

namespace osb::launcher {

Result<LimitOrder> LimitOrder::make(const Plan& plan, uint32_t first_id,
                                    const std::vector<std::string>& layers, const StateDir& state,
                                    LimitViews& views, Cpus& cpus) {
  LimitOrder order;
  order.cgroup_ = plan.limits;
  order.open_files_ = plan.open_files.value_or(0);
  if (plan.limits.io_read_bytes || plan.limits.io_write_bytes) TRY(order.add_disks(plan, state));
  if (plan.disk_bytes) order.add_disk(plan, first_id, layers, state);
  bool shown = std::any_of(plan.steps.begin(), plan.steps.end(),
                           [](const Step& step) { return step.kind == Step::Kind::show_limits; });
  order.has_views_ = shown;
  if (shown) TRY(order.add_views(plan, views, cpus));
  if (plan.limits.cpu_millis) {
    auto chosen = cpus.take(plan.id, cpus.count_for(*plan.limits.cpu_millis));
    order.some_cpus_ = !chosen.empty();
    order.cpus_ = to_set(chosen);
  }
  return order;
}

// Every disk that the sandbox reads from or writes to.
Result<void> LimitOrder::add_disks(const Plan& plan, const StateDir& state) {
  std::vector<std::string> paths = {state.path(state::kSandboxes)};
  for (const Step& step : plan.steps) {
    paths.insert(paths.end(), step.lowers.begin(), step.lowers.end());
    if (step.kind == Step::Kind::bind) paths.push_back(step.source);
  }
  for (const std::string& path : paths) {
    struct stat info{};
    if (::stat(path.c_str(), &info) < 0) return fail_errno("look at " + path);
    std::string disk = TRY(in_context("limit the speed of " + path, sys::disk_of(info.st_dev)));
    auto& disks = cgroup_.disks;
    if (std::find(disks.begin(), disks.end(), disk) == disks.end()) disks.push_back(std::move(disk));
  }
  return {};
}

void LimitOrder::add_disk(const Plan& plan, uint32_t first_id, const std::vector<std::string>& layers,
                          const StateDir& state) {
  disk_bytes_ = *plan.disk_bytes & ~int64_t{4095};
  owner_ = first_id;
  directory_ = std::string(state::kSandboxes) + "/" + plan.id;
  blank_ = state.blank_disk(disk_bytes_);
  scratch_ = std::string(state::kDisks) + "/" + plan.id;
  for (const std::string& layer : layers) {
    uppers_.push_back(layer + ".upper");
    uppers_.push_back(layer + ".work");
  }
}

void LimitOrder::show(Fd source, std::string target) {
  shown_.emplace_back(std::move(source), std::move(target));
}

Result<void> LimitOrder::add_views(const Plan& plan, LimitViews& views, const Cpus& cpus) {
  if (plan.limits.memory_bytes) show(TRY(views.meminfo(*plan.limits.memory_bytes)), "/proc/meminfo");
  if (plan.limits.cpu_millis) {
    int count = cpus.count_for(*plan.limits.cpu_millis);
    show(TRY(views.cpuinfo(count)), "/proc/cpuinfo");
    show(TRY(views.online(count)), "/sys/devices/system/cpu/online");
  }
  return {};
}

// Once the sandbox has groups.
Result<void> LimitOrder::add_groups(const Plan& plan, const sys::CgroupTree& cgroups) {
  if (!has_views_) return {};
  auto views = cgroups.views(plan.id);
  bool has_directories = !views.empty() && !views.front().first.empty();
  for (auto& [name, source] : views) {
    int mount = sys::clone_mount(AT_FDCWD, source.c_str());
    if (mount < 0) return fail_errno("copy the mount of " + source, -mount);
    show(Fd(mount), name.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + name);
    if (has_directories) cgroup_names_.push_back(name);
  }
  return {};
}

void LimitOrder::fill(ChildOrder& order) const {
  for (const auto& [source, target] : shown_) views_.push_back({source.get(), target.c_str()});
  for (const std::string& name : cgroup_names_) names_.push_back(name.c_str());
  for (const std::string& path : uppers_) upper_names_.push_back(path.c_str());
  order.views = views_.data();
  order.view_count = views_.size();
  order.cgroup_names = names_.data();
  order.cgroup_name_count = names_.size();
  order.open_files = open_files_;
  if (some_cpus_) order.cpus = &cpus_, order.cpu_bytes = sizeof cpus_;
  order.disk = {.bytes = disk_bytes_,
                .directory = directory_.c_str(),
                .blank = blank_.c_str(),
                .scratch = scratch_.c_str(),
                .uppers = upper_names_.data(),
                .upper_count = upper_names_.size(),
                .owner = owner_};
}

}  // namespace osb::launcher
