#include "launcher/sandboxes.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/cleanup.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/strings.h"
#include "launcher/checks.h"
#include "launcher/limit_order.h"
#include "launcher/ready_steps.h"
#include "launcher/records.h"
#include "launcher/rootless.h"
#include "sys/namespaces.h"
#include "sys/process.h"
#include "sys/user_namespace.h"

extern "C" const unsigned char osb_seccomp_program[];
extern "C" const unsigned char osb_seccomp_program_end[];

namespace osb::launcher {
namespace {

// Few, because every descriptor held here is copied to each new process and closed there.
constexpr size_t kCachedUserNamespaces = 64;
constexpr size_t kCachedInits = 128;
constexpr size_t kMostReusable = 64;
constexpr size_t kRootsAhead = 4;
// What a sandbox may have in the kernel's memory if its file systems are to be used again: so much at most is
// thrown away while others wait.
constexpr int64_t kMostKernelMemory = 8 << 20;

std::vector<std::string> overlay_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Step& step : plan.steps) {
    if (step.kind == Step::Kind::overlay) names.push_back(step.name);
  }
  return names;
}

std::string describe(const ChildFailure& failure, const Plan& plan) {
  std::string step =
      failure.step < plan.steps.size()
          ? "step " + std::to_string(failure.step + 1) + " (" + to_text(plan.steps[failure.step]) + ")"
          : std::string(to_string(static_cast<Stage>(failure.step - kFixedStage)));
  return step + ": " + errno_text(failure.error);
}

Result<IdRanges> ranges_of(const std::vector<std::string>& ids, const StateDir& state,
                           const std::string& groups) {
  std::vector<uint32_t> used;
  for (const std::string& id : ids) {
    if (auto range = state.range_of(id)) used.push_back(*range);
  }
  IdRanges ranges = TRY(IdRanges::open(groups, state.identity(), used));
  if (ranges.foreign() > 0)
    log::warn("sandboxes share blocks of user ids with another service", {{"sandboxes", ranges.foreign()}});
  return ranges;
}

}  // namespace

Result<Sandboxes> Sandboxes::open(const Settings& settings, StateDir& state, sys::CgroupTree cgroups) {
  auto views = TRY(LimitViews::open(settings.state_dir + "/" + state::kViews));
  Sandboxes sandboxes(settings, state, std::move(cgroups), std::move(views));
  sandboxes.networks_ = TRY(Networks::open(settings.rootless ? Networks::Back::no : Networks::Back::yes));
  if (sandboxes.roots_.available()) {
    auto nothing = sys::create_empty_mount_namespace(state.path(state::kMount));
    if (!nothing) log::warn("creates will be slower", {{"reason", nothing.error().message}});
    if (nothing) sandboxes.nothing_ = std::move(*nothing);
  }
  std::vector<std::string> ids = TRY(state.list());
  if (!settings.rootless) {
    sandboxes.ranges_ = TRY(ranges_of(ids, state, sandboxes.cgroups_.layout().v2));
    TRY(sandboxes.leave_strangers_alone());
  }
  for (const std::string& id : ids) {
    auto init = sandboxes.init_of(id);
    if (!init) continue;
    auto pid = sys::pid_of(*init);
    if (!pid) continue;
    sandboxes.cpus_.adopt(id, *pid);
    if (settings.rootless) find_group(sandboxes.cgroups_, id, *pid);
  }
  return sandboxes;
}

// Below our group there should be nothing but groups of sandboxes that have a directory: each is made after
// its directory and goes before it. Whatever else has processes is not known to be ours, so it is not ended.
Result<void> Sandboxes::leave_strangers_alone() {
  size_t alive = 0;
  for (const std::string& name : TRY(cgroups_.list())) {
    if (state_->range_of(name)) continue;
    if (!cgroups_.remove(name)) ++alive;
  }
  if (alive > 0)
    log::warn("processes run in groups of this service, but have no directory here; they are left alone",
              {{"groups", alive}});
  return {};
}

// The process that is number 1 in its own pid namespace.
Result<Fd> Sandboxes::first_process(const std::string& id) const {
  for (pid_t pid : TRY(cgroups_.processes(id))) {
    std::string status = read_file("/proc/" + std::to_string(pid) + "/status").value_or("");
    size_t at = status.find("\nNSpid:");
    if (at == status.npos) continue;
    std::string_view line = std::string_view(status).substr(at + 1);
    line = trim(line.substr(0, line.find('\n')));
    if (line.ends_with("\t1")) return sys::open_pidfd(pid);
  }
  return fail(Code::not_found, "sandbox " + id + " has no first process");
}

void Sandboxes::remember(const std::string& id, Fd init) {
  inits_[id] = std::move(init);
  if (inits_.size() <= kCachedInits) return;
  auto other = inits_.begin();
  inits_.erase(other->first == id ? std::next(other) : other);
}

// A pidfd of its first process, of which there may be none: Code::not_found.
Result<int> Sandboxes::init_of(const std::string& id) {
  auto found = inits_.find(id);
  if (found != inits_.end()) return found->second.get();
  TRY(check_id(id));
  remember(id, TRY(settings_->rootless ? recorded_process(settings_->state_dir, id) : first_process(id)));
  return inits_[id].get();
}

Result<int> Sandboxes::user_namespace(uint32_t range) {
  if (settings_->rootless) {
    // One for each sandbox: all have the same ids, only this keeps their process counts and keyrings apart.
    fresh_user_namespace_ = TRY(sys::create_user_namespace(sys::identity_map(sys::mapped_ids())));
    return fresh_user_namespace_.get();
  }
  auto found = user_namespaces_.find(range);
  if (found != user_namespaces_.end()) return found->second.get();
  if (user_namespaces_.size() >= kCachedUserNamespaces) {
    // A sandbox that runs needs its own no more.
    auto in_use = std::find_if(user_namespaces_.begin(), user_namespaces_.end(),
                               [&](const auto& entry) { return ranges_.is_taken(entry.first); });
    user_namespaces_.erase(in_use != user_namespaces_.end() ? in_use : user_namespaces_.begin());
  }
  Fd made = TRY(sys::create_user_namespace(range, kIdsPerSandbox));
  return (user_namespaces_[range] = std::move(made)).get();
}

bool Sandboxes::prepare() {
  ranges_.prepare();
  if (auto range = ranges_.find_free(); range && !settings_->rootless) (void)user_namespace(*range);
  return networks_.prepare() || prepare_root();
}

// One more for a plan like the last one, or its devices; false when nothing is left to do, or when it failed.
bool Sandboxes::prepare_root() {
  if (model_.steps.empty()) return false;
  if (std::string key = root_key(model_); roots_.count(key) >= kRootsAhead)
    return roots_.complete(key, kRootsAhead);
  auto made = make_spare(model_);
  if (made) return true;
  log::warn("cannot make a file system ahead", {{"error", made.error().message}});
  model_ = {};
  return false;
}

Result<void> Sandboxes::make_spare(const Plan& plan) {
  Cleanup undo;
  uint32_t range = TRY(ranges_.find_free());
  ranges_.mark(range, true);
  undo.push([&] { ranges_.mark(range, false); });
  std::string name = std::to_string(range);
  undo.push([&] { (void)state_->discard_spare(name); });
  Fd directory = TRY(state_->create_spare(name, range, plan.image, overlay_names(plan)));
  Layers layers = TRY(open_layers(plan, *settings_));
  Root root = TRY(Roots::make(plan, layers, directory.get(), TRY(user_namespace(range))));
  root.range = range;
  TRY(keep(std::move(root)));
  undo.release();
  return {};
}

Result<void> Sandboxes::keep(Root root) {
  if (roots_.full()) TRY(drop_oldest_root());
  return roots_.keep(std::move(root));
}

Result<void> Sandboxes::drop_oldest_root() {
  Root oldest = roots_.take_oldest();
  TRY(state_->discard_spare(std::to_string(oldest.range)));
  ranges_.mark(oldest.range, false);
  return {};
}

void Sandboxes::drop_spares() {
  model_ = {};
  networks_.drop_spares();
  cgroups_.drop_spent();
  while (!roots_.empty()) {
    if (auto dropped = drop_oldest_root(); !dropped)
      log::error("cannot drop a spare", {{"error", dropped.error().message}});
  }
  ranges_.give_back(1);
}

void Sandboxes::leave() {
  // The directories of spares go with StateDir::leave().
  while (!roots_.empty()) ranges_.mark(roots_.take_oldest().range, false);
  ranges_.give_back(0);
  cgroups_.leave();
}

// A directory for a sandbox, and its overlays if they can be mounted ahead of its process. What was made is
// undone by `undo`.
Result<Sandboxes::Place> Sandboxes::make_place(const Plan& plan, Cleanup& undo) {
  bool ahead = roots_.available() && !plan.disk_bytes;
  Place place;
  if (ahead) place.root = roots_.take(root_key(plan));
  place.range = place.root ? place.root->range : TRY(ranges_.find_free());
  ranges_.mark(place.range, true);
  undo.push([this, range = place.range] { ranges_.mark(range, false); });
  undo.push([this, id = plan.id] { (void)state_->discard(id); });
  Fd directory;
  if (place.root) {
    undo.push([this, range = place.range] { (void)state_->discard_spare(std::to_string(range)); });
    TRY(state_->spare_to_sandbox(std::to_string(place.range), plan.id));
  } else {
    directory = TRY(state_->create_sandbox(plan.id, place.range, plan.image, overlay_names(plan)));
  }
  // Not before the directory is there: it tells that the image is in use.
  place.layers = TRY(open_layers(plan, *settings_));
  if (place.root && !Roots::fits(*place.root, place.layers)) {
    // Another image has come to lie where the old one was.
    undo.run();
    return make_place(plan, undo);
  }
  if (ahead && !place.root) {
    int ids = TRY(user_namespace(place.range));
    place.root = TRY(Roots::make(plan, place.layers, directory.get(), ids));
    place.root->range = place.range;
  }
  if (!place.root) {
    size_t lowers = 0;
    for (const auto& opened : place.layers) lowers += opened.size();
    TRY(state_->ensure_lowers(lowers));
  }
  return place;
}

Result<Sandboxes::Starting> Sandboxes::start(const Plan& plan) {
  TRY(check(plan));
  // What has no id of its own yet must not be undone.
  if (state_->range_of(plan.id)) return fail(Code::already_exists, "there is a sandbox " + plan.id);
  Cleanup undo;
  Place place = TRY(make_place(plan, undo));
  uint32_t range = place.range;
  Network network = TRY(networks_.take());
  ReadySteps::Ahead ahead;
  // Where overlays can be made of descriptors the process starts from nothing, also one that makes its own.
  bool from_nothing = place.root || (plan.disk_bytes && roots_.available() && nothing_.valid());
  if (from_nothing) {
    ahead.sysfs = network.sysfs.get();
    ahead.sysfs_tree = network.tree.get();
  }
  if (place.root) {
    ahead.root = &*place.root;
    ahead.devices = place.root->devices.get();
  } else if (from_nothing) {
    ahead.disk = ReadySteps::Ahead::Disk::detached;
  }
  ReadySteps ready = TRY(ReadySteps::make(plan, place.layers, ahead, *settings_, *state_));
  undo.push([&] { cpus_.release(plan.id); });
  LimitOrder limited = TRY(LimitOrder::make(plan, range, overlay_names(plan), *state_, views_, cpus_));
  sys::CgroupHandles cgroup =
      TRY(settings_->rootless ? cgroups_.create(plan.id, enforceable(limited.cgroup(), cgroups_.layout()))
                              : cgroups_.create(plan.id, limited.cgroup()));
  undo.push([&] { (void)cgroups_.remove(plan.id); });
  TRY(limited.add_groups(plan, cgroups_));
  Fd api = TRY(state_->listen(plan.id, ".api"));
  Fd control = TRY(state_->listen(plan.id, ".control"));
  int user_namespace = TRY(this->user_namespace(range));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd report_read(pipe[0]), report_write(pipe[1]);

  std::vector<int> v1_procs;
  for (const Fd& fd : cgroup.v1_procs) v1_procs.push_back(fd.get());
  ChildOrder order;
  order.steps = ready.data();
  order.step_count = ready.size();
  if (from_nothing) order.nothing = nothing_.get();
  order.state_dir = settings_->state_dir.c_str();
  limited.fill(order);
  order.first_id = range;
  order.user_namespace = user_namespace;
  order.network_namespace = network.space.get();
  order.v1_procs = v1_procs.data();
  order.v1_count = v1_procs.size();
  order.daemon_group = cgroup.daemon.get();
  order.work_group = cgroup.work.get();
  order.first_in_group =
      !settings_->rootless && cgroups_.layout().cpu.version != sys::Controller::Version::none;
  order.seccomp = osb_seccomp_program;
  order.seccomp_bytes = static_cast<size_t>(osb_seccomp_program_end - osb_seccomp_program);
  order.sized = plan.limits.memory_bytes.has_value();
  order.execd = settings_->execd_fd;
  order.api_listener = api.get();
  order.control_listener = control.get();
  order.report = report_write.get();
  Gate gate;
  if (settings_->rootless) {
    gate = TRY(Gate::create());
    order.rootless = true;
    order.go = gate.wait.get();
    order.go_writer = gate.open.get();
    order.processes = plan.limits.pids.value_or(0);
  }

  int pidfd = -1;
  struct clone_args args{};
  args.flags = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD;
  if (cgroup.v2_directory.valid()) args.flags |= CLONE_INTO_CGROUP;
  args.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup.v2_directory.valid()) args.cgroup = static_cast<uint64_t>(cgroup.v2_directory.get());
  long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) run_child(order);
  if (pid < 0) return fail_errno("clone the sandbox");
  Fd init(pidfd);
  // Runs before everything else that is undone: a group with a process in it cannot be removed.
  undo.push([pid] {
    ::kill(static_cast<pid_t>(pid), SIGKILL);  // ours and not waited for: the number is still its own
    ::waitpid(static_cast<pid_t>(pid), nullptr, __WALL);
  });
  // While the new process makes itself at home. Nobody is told of it before this is written.
  if (!plan.record.empty()) TRY(keep_record(plan.id, plan.record));
  if (settings_->rootless)
    TRY(gate.pass(record_process(settings_->state_dir, plan.id, static_cast<pid_t>(pid))));
  undo.release();

  Starting starting;
  starting.id = plan.id;
  starting.report = std::move(report_read);
  starting.pidfd = std::move(init);
  starting.started = {pid, sys::process_start_ticks(static_cast<pid_t>(pid)).value_or(0)};
  if (Fd copy(::fcntl(pidfd, F_DUPFD_CLOEXEC, 0)); copy.valid()) remember(plan.id, std::move(copy));
  // The new process has them now. What is attached stays as long as anybody has it open.
  network.tree.reset();
  if (place.root) {
    place.root->devices.reset();
    if (model_.steps.empty() || root_key(model_) != place.root->key) {
      model_ = plan;
      model_.record.clear();
    }
    reusable_[plan.id] = {std::move(*place.root), std::move(network)};
    if (reusable_.size() > kMostReusable) reusable_.erase(reusable_.begin());
  }
  return starting;
}

Result<Fd> Sandboxes::finish(Starting& starting, const Plan& plan) {
  ChildFailure failure;
  ssize_t n = ::read(starting.report.get(), &failure, sizeof failure);
  if (n == 0) {
    // The pipe also closes when the process was killed before its exec.
    struct pollfd gone{starting.pidfd.get(), POLLIN, 0};
    if (::poll(&gone, 1, 0) == 0) return std::move(starting.pidfd);
    return fail(Code::internal, "the sandbox's first process was killed while it was being set up");
  }
  if (n != sizeof failure) return fail(Code::internal, "the sandbox's first process reported nonsense");
  return std::unexpected(Error{code_from_errno(failure.error), failure.error, describe(failure, plan)});
}

Result<Fd> Sandboxes::kill(const std::string& id) {
  TRY(check_id(id));
  Fd init;
  auto found = init_of(id);
  if (found) init = std::move(inits_.extract(id).mapped());
  // Without root nothing else ends a sandbox: as long as it is not known to be gone, it is not removed
  // either.
  if (!found && settings_->rootless && found.error().code != Code::not_found)
    return std::unexpected(std::move(found.error()));
  // What is not to be used again is let go while the sandbox still holds it: then its end takes it apart, not
  // this process.
  auto reusable = reusable_.find(id);
  if (reusable != reusable_.end() && (cgroups_.kernel_memory(id).value_or(INT64_MAX) > kMostKernelMemory ||
                                      !is_untouched(id, reusable->second)))
    reusable_.erase(reusable);
  // Without root there are no groups; with the first process of a pid namespace all others end.
  if (settings_->rootless && init.valid()) TRY(sys::send_signal(init.get(), SIGKILL));
  TRY(cgroups_.kill(id));
  return init;
}

bool Sandboxes::is_untouched(const std::string& id, const Reusable& used) const {
  auto directory = state_->open_sandbox(id);
  return directory && Roots::untouched(used.root, directory->get());
}

// False when the sandbox's directory is still where it was.
bool Sandboxes::keep_as_spare(const std::string& id, Root root) {
  uint32_t range = root.range;
  std::string name = std::to_string(range);
  // The next sandbox in there must not be taken for this one.
  auto directory = state_->open_sandbox(id);
  if (!directory || !remove_record(directory->get()) || !state_->sandbox_to_spare(id, name)) return false;
  if (keep(std::move(root))) return true;
  (void)state_->discard_spare(name);
  ranges_.mark(range, false);
  return true;
}

Result<void> Sandboxes::remove(const std::string& id, bool keep_files) {
  TRY(cgroups_.remove(id));
  cpus_.release(id);
  auto reusable = reusable_.extract(id);
  if (keep_files) return {};
  if (!reusable.empty() && is_untouched(id, reusable.mapped())) {
    Reusable& used = reusable.mapped();
    if (used.network.space.valid()) networks_.give_back(std::move(used.network));
    if (keep_as_spare(id, std::move(used.root))) return {};
  }
  auto range = state_->range_of(id);
  TRY(state_->discard(id));
  if (range) ranges_.mark(*range, false);
  return {};
}

// Only the process itself says that it is gone; that its group cannot be read, or is another one, does not.
Result<void> Sandboxes::check_lives(const std::string& id, pid_t pid, uint64_t start_ticks) {
  auto gone = [&] {
    return fail(Code::not_found, "sandbox " + id + " is not the process that was recorded");
  };
  auto pidfd = sys::open_pidfd(pid);
  if (!pidfd && pidfd.error().sys_errno == ESRCH) return gone();
  if (!pidfd) return std::unexpected(std::move(pidfd.error()));
  // Looked at while the descriptor holds the number: it is this process or none.
  auto ticks = sys::process_start_ticks(pid);
  struct pollfd ended{pidfd->get(), POLLIN, 0};
  if (::poll(&ended, 1, 0) > 0) return gone();
  if (TRY(std::move(ticks)) != start_ticks) return gone();
  return {};
}

Result<Fd> Sandboxes::adopt(const std::string& id, pid_t pid, uint64_t start_ticks) {
  TRY(check_id(id));
  if (pid <= 1) return fail(Code::permission_denied, "refused: not a pid");
  TRY(check_lives(id, pid, start_ticks));
  auto lost = [&](Error error) {
    error.code = Code::unavailable;
    return std::unexpected(std::move(error).in("sandbox " + id + " lives, but not where it should"));
  };
  auto found = init_of(id);
  if (!found) return lost(std::move(found.error()));
  int init = *found;
  std::vector<pid_t> pids;
  if (settings_->rootless) {
    pids.push_back(TRY(sys::pid_of(init)));
  } else {
    pids = TRY(cgroups_.processes(id));
  }
  if (std::find(pids.begin(), pids.end(), pid) == pids.end())
    return lost({Code::unavailable, 0, "its first process is not in its group"});
  int copy = ::fcntl(init, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail_errno("copy a pidfd");
  return Fd(copy);
}

Result<Sandboxes::Recalled> Sandboxes::recall(const std::string& id) {
  TRY(check_id(id));
  Recalled recalled;
  if (auto directory = state_->open_sandbox(id)) {
    recalled.record = TRY(read_record(directory->get()));
  } else if (directory.error().code != Code::not_found) {
    return std::unexpected(std::move(directory.error()));
  }
  auto init = init_of(id);
  auto pid = init ? sys::pid_of(*init) : Result<pid_t>(std::unexpected(std::move(init.error())));
  auto ticks = pid ? sys::process_start_ticks(*pid) : Result<uint64_t>(std::unexpected(pid.error()));
  if (!ticks && ticks.error().code == Code::not_found) return recalled;
  recalled.first_process = {*pid, TRY(std::move(ticks))};
  return recalled;
}

Result<void> Sandboxes::keep_record(const std::string& id, std::string_view record) const {
  TRY(check_id(id));
  return write_record(TRY(state_->open_sandbox(id)).get(), record);
}

Result<std::vector<Fd>> Sandboxes::sockets(const std::string& id, size_t count) {
  int init = TRY(init_of(id));
  if (count == 0 || count > kMaxDescriptors)
    return fail(Code::permission_denied, "refused: too many sockets at once");
  // Whoever holds them could reach the next sandbox of that network.
  if (auto reusable = reusable_.find(id); reusable != reusable_.end()) reusable->second.network = {};
  std::vector<Fd> sockets(count);
  TRY(sys::sockets_in_network(init, networks_.home(), sockets.data(), static_cast<int>(count)));
  return sockets;
}

Result<int64_t> Sandboxes::oom_kills(const std::string& id) const {
  TRY(check_id(id));
  return cgroups_.oom_kills(id);
}

Result<void> Sandboxes::freeze(const std::string& id, bool frozen) const {
  TRY(check_id(id));
  if (settings_->rootless && inits_.contains(id) && !cgroups_.open_events(id))
    return fail(Code::unsupported, "the sandbox was made without a cgroup");
  return cgroups_.freeze(id, frozen);
}

Result<bool> Sandboxes::is_to_freeze(const std::string& id) const {
  auto asked = cgroups_.is_to_freeze(id);
  // Without root it may have been made in another group, or in none; then nobody froze it.
  if (!asked && settings_->rootless && asked.error().code == Code::not_found) return false;
  return asked;
}

Result<std::vector<std::string>> Sandboxes::list(const std::string& after) const {
  std::set<std::string> all;
  // Not what only has a group: see leave_strangers_alone().
  for (std::string& id : TRY(state_->list())) all.insert(std::move(id));
  std::vector<std::string> page;
  for (auto it = all.upper_bound(after); it != all.end() && page.size() < kListPage; ++it)
    page.push_back(*it);
  return page;
}

}  // namespace osb::launcher
