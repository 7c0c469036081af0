#include "runtime/native/plan.h"

#include <algorithm>

#include "base/limit_bounds.h"
#include "base/sha256.h"
#include "launcher/settings.h"
#include "launcher/system_steps.h"
#include "launcher/volume_path.h"

namespace osb::runtime {
namespace {

using launcher::Step;

Step step(Step::Kind kind, std::string target) {
  Step s;
  s.kind = kind;
  s.target = std::move(target);
  return s;
}

// What a snapshot puts over an overlay's own layers, and what the image itself has of a sandbox: a snapshot
// over such an image names its layers, too.
std::vector<std::string> layers_of(const SandboxSpec& spec, const ImageRoot& image,
                                   const std::string& state_dir, const std::string& overlay) {
  std::vector<std::string> paths;
  auto add = [&](const auto& layer) {
    std::string path = state_dir + "/" + launcher::state::kSnapshotLayers + "/" + layer.digest;
    if (layer.overlay == overlay && std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
  };
  std::ranges::for_each(spec.image.layers, add);
  std::ranges::for_each(image.over, add);
  return paths;
}

// It is memory of the sandbox: what is left has to hold its programs.
std::optional<int64_t> shm_of(const SandboxSpec& spec, const Limits& limits) {
  if (spec.shm_bytes) return spec.shm_bytes;
  if (!limits.memory_bytes) return std::nullopt;
  return std::clamp(*limits.memory_bytes / 2, limit_bounds::kMinShmBytes, limit_bounds::kMostShmBytes);
}

}  // namespace

std::string volume_owner(const std::string& owner) {
  if (owner.size() <= 64 && launcher::is_volume_name(owner)) return owner;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "owner-";
  for (uint8_t byte : sha256_digest(owner)) out.append({kDigits[byte >> 4], kDigits[byte & 15]});
  return out;
}

launcher::Step volume_step(const std::string& owner, const Mount& mount) {
  bool is_host = mount.kind == Mount::Kind::host_path;
  Step volume = step(is_host ? Step::Kind::bind : Step::Kind::volume, mount.target);
  volume.source = is_host ? mount.source : volume_owner(owner) + "/" + mount.source;
  if (!mount.sub_path.empty()) volume.source += "/" + mount.sub_path;
  if (is_host) volume.ids = Step::Ids::owner;
  if (mount.access == Mount::Access::read_write) volume.access = Step::Access::read_write;
  return volume;
}

launcher::Plan make_plan(const SandboxSpec& spec, const ImageRoot& image, const Limits& limits,
                         const std::string& state_dir) {
  launcher::Plan plan;
  plan.id = spec.handle;
  plan.image = image.id;
  plan.limits = {.cpu_millis = limits.cpu_millis,
                 .memory_bytes = limits.memory_bytes,
                 .pids = limits.pids,
                 .io_read_bytes = limits.io_read_bytes,
                 .io_write_bytes = limits.io_write_bytes};
  plan.disk_bytes = limits.disk_bytes;
  plan.open_files = limits.open_files;
  plan.shm_bytes = shm_of(spec, limits);
  auto is_mounted = [&](const std::string& target) {
    return std::ranges::any_of(spec.mounts, [&](const Mount& mount) { return mount.target == target; });
  };
  if (spec.network) plan.network.kind = launcher::PlanNetwork::Kind::policy;

  Step root = step(Step::Kind::overlay, "/");
  root.name = "root";
  root.lowers = layers_of(spec, image, state_dir, root.name);
  root.lowers.insert(root.lowers.end(), image.lowers.begin(), image.lowers.end());
  plan.steps.push_back(std::move(root));
  for (const auto& [target, lower] : image.trees) {
    Step tree = step(Step::Kind::overlay, target);
    tree.name = target.substr(1);
    tree.lowers = layers_of(spec, image, state_dir, tree.name);
    tree.lowers.push_back(lower);
    plan.steps.push_back(std::move(tree));
  }
  for (const auto& [target, source] : image.views) {
    if (is_mounted(target)) continue;
    Step view = step(Step::Kind::bind, target);
    view.source = source;
    plan.steps.push_back(std::move(view));
  }
  if (spec.read_only_root) {
    for (const char* path : {"/tmp", "/run"}) {
      if (!is_mounted(path)) plan.steps.push_back(step(Step::Kind::scratch, path));
    }
  }
  // Whatever lies in another comes after it.
  std::vector<Mount> mounts = spec.mounts;
  std::ranges::sort(mounts, {}, &Mount::target);
  for (const Mount& mount : mounts) plan.steps.push_back(volume_step(spec.owner, mount));
  const auto& system = launcher::system_steps();
  plan.steps.insert(plan.steps.end(), system.begin(), system.end());
  if (limits.cpu_millis || limits.memory_bytes) plan.steps.push_back(step(Step::Kind::show_limits, ""));
  Step hostname = step(Step::Kind::hostname, "");
  hostname.name = "sandbox";
  plan.steps.push_back(std::move(hostname));
  if (spec.read_only_root) {
    for (const auto& [target, lower] : image.trees) plan.steps.push_back(step(Step::Kind::seal, target));
    plan.steps.push_back(step(Step::Kind::seal, "/"));
  }
  return plan;
}

}  // namespace osb::runtime
