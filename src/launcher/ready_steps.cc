#include "launcher/ready_steps.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include "launcher/checks.h"
#include "launcher/host_paths.h"
#include "launcher/volume_ids.h"
#include "sys/mount.h"
#include "sys/namespaces.h"

namespace osb::launcher {
namespace {

constexpr uint64_t kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

}  // namespace

Result<Layers> open_layers(const Plan& plan, const Settings& settings) {
  Layers layers;
  for (const Step& step : plan.steps) {
    if (step.kind != Step::Kind::overlay) continue;
    auto& opened = layers.emplace_back();
    for (const std::string& lower : step.lowers) opened.push_back(TRY(open_source(settings, lower)));
  }
  return layers;
}

// Detached here: a mount of our namespace could not be copied from within the sandbox's.
Result<void> ReadySteps::add_mount(int source, const std::string& what) {
  int mount = sys::clone_mount(source, "");
  if (mount < 0) return fail_errno("copy the mount of " + what, -mount);
  opened_.emplace_back(mount);
  sources_.back().push_back(mount);
  return {};
}

// What belongs to root on the host is written only by a sandbox that can give no file a privilege, and only
// after a look at what is there: as it is on the host, with root's rights.
Result<int> ReadySteps::write_as_root(int source, Plan::Kernel kernel) {
  if (kernel != Plan::Kernel::host)
    return fail(
        Code::permission_denied,
        "the directory belongs to root or to root's group, as whom no sandbox with a kernel of its own "
        "writes; give it to others (chown USER:GROUP), or mount it read-only");
  int plain = sys::clone_mount(source, "");
  if (plain < 0) return fail_errno("copy the mount of a directory of the host", -plain);
  opened_.emplace_back(plain);
  writes_as_root_ = true;
  return plain;
}

// With its ids and its access before anybody sees it.
Result<void> ReadySteps::add_volume(const Plan& plan, ReadyStep& ready, uint32_t first_id,
                                    const Places& places) {
  const Step& step = *ready.step;
  bool is_named = step.kind == Step::Kind::volume;
  auto path = parse_volume_path(step.source);
  Fd source;
  if (is_named) {
    opened_.push_back(TRY(places.volumes.mount(*path)));
    sources_.back().push_back(opened_.back().get());
  } else {
    source = TRY(open_host_path(places.settings, step.source, Missing::refused));
    TRY(add_mount(source.get(), "a directory of the host"));
  }
  // Ids inside are then those of our own user namespace.
  if (places.settings.rootless) return {};
  int mount = opened_.back().get();
  struct stat info{};
  if (::fstat(mount, &info) < 0) return fail_errno("look at a volume");
  bool writes = step.access == Step::Access::read_write;
  // What root has and nobody can write is shown as it is.
  if (!is_named && !writes && info.st_uid == 0) return {};
  bool as_root = !is_named && writes && is_roots(info);
  if (as_root) ready.looked_through = TRY(write_as_root(source.get(), plan.kernel));
  IdMaps maps =
      is_named ? volume_maps(first_id)
               : owner_maps(first_id, info.st_uid, info.st_gid, as_root ? HostRoot::owner : HostRoot::nobody);
  Fd ids = TRY(sys::create_id_map(maps.users, maps.groups));
  int status = sys::idmap_mount(mount, ids.get());
  if (status == -EINVAL)
    return fail(Code::unsupported, "the file system of the volume does not map ids, or the kernel cannot");
  if (status == 0) status = sys::restrict_mount(mount, writes ? kQuiet : kQuiet | MOUNT_ATTR_RDONLY);
  if (status < 0) return fail_errno("shape the mount of a volume", -status);
  ready.made = ReadyStep::Made::whole;
  return {};
}

Result<ReadySteps> ReadySteps::make(const Plan& plan, const Layers& layers, const Ahead& ahead,
                                    uint32_t first_id, const Places& places) {
  ReadySteps ready;
  ready.sources_.reserve(plan.steps.size());
  ready.paths_.reserve(plan.steps.size() * 2);
  size_t overlay = 0;
  for (const Step& step : plan.steps) {
    ReadyStep r;
    r.step = &step;
    ready.sources_.emplace_back();
    if (is_volume(step)) {
      TRY(in_context(step.target, ready.add_volume(plan, r, first_id, places)));
    } else if (step.kind == Step::Kind::bind) {
      Fd source = TRY(open_source(places.settings, step.source));
      TRY(ready.add_mount(source.get(), step.source));
    } else if (step.kind == Step::Kind::sysfs && ahead.sysfs_tree >= 0) {
      ready.sources_.back().push_back(ahead.sysfs_tree);
      r.made = ReadyStep::Made::whole;
    } else if (step.kind == Step::Kind::sysfs && ahead.sysfs >= 0) {
      ready.sources_.back().push_back(ahead.sysfs);
      r.made = ReadyStep::Made::source;
    } else if (step.kind == Step::Kind::devices && ahead.devices >= 0) {
      ready.sources_.back().push_back(ahead.devices);
      r.made = ReadyStep::Made::whole;
    } else if (step.kind == Step::Kind::overlay && ahead.root) {
      TRY(ready.add_mount(ahead.root->overlays.at(overlay++).mount.get(), "the overlay for " + step.target));
      r.made = ReadyStep::Made::whole;
    } else if (step.kind == Step::Kind::overlay) {
      for (const Fd& layer : layers.at(overlay++)) TRY(ready.add_mount(layer.get(), "a layer"));
      r.layers_at_once = !sys::overlay_takes_single_layers();
      // On a disk of its own that is attached nowhere; else where the state directory has them.
      bool on_disk = ahead.disk == Ahead::Disk::detached;
      r.upper =
          ready.paths_.emplace_back(on_disk ? step.name + ".upper" : places.state.upper(plan.id, step.name))
              .c_str();
      r.work =
          ready.paths_.emplace_back(on_disk ? step.name + ".work" : places.state.work(plan.id, step.name))
              .c_str();
    }
    r.sources = ready.sources_.back().data();
    ready.steps_.push_back(r);
  }
  return ready;
}

}  // namespace osb::launcher
