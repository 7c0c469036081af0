#include "launcher/ready_steps.h"

#include "launcher/checks.h"
#include "sys/mount.h"

namespace osb::launcher {

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

Result<ReadySteps> ReadySteps::make(const Plan& plan, const Layers& layers, const Ahead& ahead,
                                    const Settings& settings, const StateDir& state) {
  ReadySteps ready;
  ready.sources_.reserve(plan.steps.size());
  ready.paths_.reserve(plan.steps.size() * 2);
  size_t overlay = 0;
  for (const Step& step : plan.steps) {
    ReadyStep r;
    r.step = &step;
    ready.sources_.emplace_back();
    if (step.kind == Step::Kind::bind) {
      Fd source = TRY(open_bind(settings, step));
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
          ready.paths_.emplace_back(on_disk ? step.name + ".upper" : state.upper(plan.id, step.name)).c_str();
      r.work =
          ready.paths_.emplace_back(on_disk ? step.name + ".work" : state.work(plan.id, step.name)).c_str();
    }
    r.sources = ready.sources_.back().data();
    ready.steps_.push_back(r);
  }
  return ready;
}

}  // namespace osb::launcher
