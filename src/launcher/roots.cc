#include "launcher/roots.h"

#include <fcntl.h>
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>

#include "launcher/system_trees.h"
#include "sys/directory.h"
#include "sys/mount.h"

namespace osb::launcher {
namespace {

constexpr size_t kMostSpares = 32;

bool same_time(const struct timespec& a, const struct timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

Result<Fd> open_part(int directory, const std::string& layer, const char* part, int flags) {
  return open_beneath(directory, layer + part, flags | O_DIRECTORY);
}

Result<Root::Overlay> mount_overlay(const Step& step, const std::vector<Fd>& layers, int directory,
                                    int user_namespace) {
  Root::Overlay overlay;
  overlay.name = step.name;
  std::vector<Fd> copies;
  std::vector<sys::MountOption> options;
  for (const Fd& layer : layers) {
    struct stat info{};
    if (::fstat(layer.get(), &info) < 0) return fail_errno("look at a layer");
    overlay.lowers.emplace_back(info.st_dev, info.st_ino);
    Fd& copy = copies.emplace_back(sys::clone_mount(layer.get(), ""));
    if (!copy.valid()) return fail_errno("copy the mount of a layer", -copy.get());
    if (int status = sys::idmap_mount(copy.get(), user_namespace); status < 0)
      return fail_errno("map the ids of a layer", -status);
    options.push_back({"lowerdir+", nullptr, copy.get()});
  }
  Fd upper = TRY(open_part(directory, step.name, ".upper", O_PATH));
  Fd work = TRY(open_part(directory, step.name, ".work", O_PATH));
  options.push_back({"upperdir", nullptr, upper.get()});
  options.push_back({"workdir", nullptr, work.get()});
  for (const sys::MountOption& option : sys::kPlainOverlay) options.push_back(option);
  // Without times of access: they would tell the next sandbox what this one looked at.
  int mount = sys::mount_filesystem("overlay", options.data(), static_cast<int>(options.size()),
                                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
  if (mount < 0) return fail_errno("mount the overlay for " + step.target, -mount);
  overlay.mount = Fd(mount);
  // After the mount: the kernel notes something on the upper.
  if (::fstat(upper.get(), &overlay.upper) < 0) return fail_errno("look at an upper");
  return overlay;
}

bool untouched(const Root::Overlay& overlay, int directory) {
  auto upper = open_part(directory, overlay.name, ".upper", O_RDONLY | O_NOATIME);
  if (!upper) return false;
  struct stat now{};
  if (::fstat(upper->get(), &now) < 0) return false;
  // Nobody can set a ctime, and every change of the directory itself or of what is in it moves it; a change
  // of anything deeper first needs an entry here.
  const struct stat& then = overlay.upper;
  if (!same_time(now.st_ctim, then.st_ctim) || !same_time(now.st_mtim, then.st_mtim) ||
      now.st_mode != then.st_mode || now.st_uid != then.st_uid || now.st_gid != then.st_gid ||
      now.st_nlink != then.st_nlink)
    return false;
  return sys::is_empty_directory(upper->get()).value_or(false);
}

}  // namespace

std::string root_key(const Plan& plan) {
  std::string key = plan.image;
  for (const Step& step : plan.steps) {
    if (step.kind == Step::Kind::overlay) key += "\n" + to_text(step);
  }
  return key;
}

Roots::Roots(const Settings& settings, const StateDir& state) {
  if (settings.rootless) return;  // all sandboxes have the same ids: there is no range that could go along
  Fd directory(sys::clone_mount(AT_FDCWD, state.path(state::kSpares).c_str()));
  Fd copy(directory.valid() ? sys::clone_mount(directory.get(), "") : -1);
  available_ = copy.valid();
}

Result<Root> Roots::make(const Plan& plan, const Layers& layers, int directory, int user_namespace) {
  // Seen through a mount of its own, so that the mount table of a sandbox names no directory of the host.
  int copy = sys::clone_mount(directory, "");
  if (copy < 0) return fail_errno("copy the mount of the sandbox's directory", -copy);
  Fd shown(copy);
  Root root;
  root.key = root_key(plan);
  size_t next = 0;
  for (const Step& step : plan.steps) {
    if (step.kind != Step::Kind::overlay) continue;
    root.overlays.push_back(TRY(mount_overlay(step, layers.at(next++), shown.get(), user_namespace)));
  }
  return root;
}

bool Roots::fits(const Root& root, const Layers& layers) {
  auto is = [](const std::pair<dev_t, ino_t>& was, const Fd& layer) {
    struct stat info{};
    return ::fstat(layer.get(), &info) == 0 && was == std::pair(info.st_dev, info.st_ino);
  };
  return std::equal(root.overlays.begin(), root.overlays.end(), layers.begin(), layers.end(),
                    [&](const Root::Overlay& overlay, const std::vector<Fd>& opened) {
                      return std::equal(overlay.lowers.begin(), overlay.lowers.end(), opened.begin(),
                                        opened.end(), is);
                    });
}

bool Roots::untouched(const Root& root, int directory) {
  return std::all_of(root.overlays.begin(), root.overlays.end(),
                     [&](const Root::Overlay& overlay) { return launcher::untouched(overlay, directory); });
}

std::optional<Root> Roots::take(const std::string& key) {
  auto fits = [&](const Root& root) { return root.key == key; };
  auto found = std::find_if(spares_.rbegin(), spares_.rend(),
                            [&](const Root& root) { return fits(root) && root.devices.valid(); });
  if (found == spares_.rend()) found = std::find_if(spares_.rbegin(), spares_.rend(), fits);
  if (found == spares_.rend()) return std::nullopt;
  Root root = std::move(*found);
  spares_.erase(std::next(found).base());
  return root;
}

size_t Roots::count(const std::string& key) const {
  return static_cast<size_t>(
      std::count_if(spares_.begin(), spares_.end(), [&](const Root& root) { return root.key == key; }));
}

bool Roots::full() const { return spares_.size() >= kMostSpares; }

Root Roots::take_oldest() {
  Root oldest = std::move(spares_.front());
  spares_.erase(spares_.begin());
  return oldest;
}

std::optional<Root> Roots::take_over(std::string_view path) {
  auto found =
      std::ranges::find_if(spares_, [&](const Root& root) { return root.key.find(path) != root.key.npos; });
  if (found == spares_.end()) return std::nullopt;
  Root taken = std::move(*found);
  spares_.erase(found);
  return taken;
}

bool Roots::complete(const std::string& key, size_t enough) {
  if (!devices_) return false;
  Root* without = nullptr;
  for (Root& root : spares_) {
    if (root.key != key) continue;
    if (!root.devices.valid())
      without = &root;
    else if (--enough == 0)
      return false;
  }
  if (!without) return false;
  int made = make_device_tree(without->range);
  // A kernel that mounts only onto what is attached (before 6.15) stays so; anything else may pass.
  if (made == -EINVAL) devices_ = false;
  if (made < 0) return false;
  without->devices = Fd(made);
  return true;
}

Result<void> Roots::keep(Root root) {
  for (const Root::Overlay& overlay : root.overlays) {
    if (int status = sys::forget_cached(overlay.mount.get()); status < 0)
      return fail_errno("empty the cache of an overlay", -status);
  }
  spares_.push_back(std::move(root));
  return {};
}

}  // namespace osb::launcher
