#include "launcher/sandboxes.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/cleanup.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/strings.h"
#include "launcher/checks.h"
#include "launcher/limit_order.h"
#include "launcher/rootless.h"
#include "sys/mount.h"
#include "sys/namespaces.h"
#include "sys/process.h"
#include "sys/user_namespace.h"

extern "C" const unsigned char osb_seccomp_program[];
extern "C" const unsigned char osb_seccomp_program_end[];

namespace osb::launcher {
namespace {

constexpr size_t kSpareNetworks = 4;
constexpr size_t kCachedUserNamespaces = 256;

// The descriptors and strings that a plan's steps need, opened before the clone.
struct Prepared {
  std::vector<Fd> opened;
  std::vector<std::vector<int>> sources;
  std::vector<std::string> paths;
  std::vector<ReadyStep> steps;
};

Result<Prepared> prepare_steps(const Plan& plan, const Settings& settings, const StateDir& state) {
  Prepared ready;
  ready.sources.reserve(plan.steps.size());
  ready.paths.reserve(plan.steps.size() * 2);
  for (const Step& step : plan.steps) {
    ReadyStep r;
    r.step = &step;
    std::vector<std::string> wanted = step.lowers;
    if (step.kind == Step::Kind::bind) wanted.push_back(step.source);
    std::vector<int> fds;
    for (const std::string& path : wanted) {
      // Detached here: a mount of our namespace could not be copied from within the sandbox's.
      Fd source = TRY(open_source(settings, path));
      int mount = sys::clone_mount(source.get(), "");
      if (mount < 0) return fail_errno("copy the mount of " + path, -mount);
      ready.opened.emplace_back(mount);
      fds.push_back(mount);
    }
    ready.sources.push_back(std::move(fds));
    r.sources = ready.sources.back().data();
    if (step.kind == Step::Kind::overlay) {
      ready.paths.push_back(state.upper(plan.id, step.name));
      r.upper = ready.paths.back().c_str();
      ready.paths.push_back(state.work(plan.id, step.name));
      r.work = ready.paths.back().c_str();
    }
    ready.steps.push_back(r);
  }
  return ready;
}

std::string describe(const ChildFailure& failure, const Plan& plan) {
  std::string step =
      failure.step < plan.steps.size()
          ? "step " + std::to_string(failure.step + 1) + " (" + to_text(plan.steps[failure.step]) + ")"
          : std::string(to_string(static_cast<Stage>(failure.step - kFixedStage)));
  return step + ": " + errno_text(failure.error);
}

}  // namespace

Result<Sandboxes> Sandboxes::open(const Settings& settings, StateDir& state, sys::CgroupTree cgroups) {
  auto views = TRY(LimitViews::open(settings.state_dir + "/" + state::kViews));
  Sandboxes sandboxes(settings, state, std::move(cgroups), std::move(views));
  // Without root there is no way back into the host's: see sys::create_network_namespace.
  if (!settings.rootless) sandboxes.own_network_ = TRY(sys::own_network_namespace());
  for (const std::string& id : TRY(state.list())) {
    if (auto range = state.range_of(id)) sandboxes.mark(*range, true);
    if (!settings.rootless) continue;
    if (auto init = recorded_process(settings.state_dir, id)) sandboxes.inits_[id] = std::move(*init);
  }
  if (settings.rootless) {
    for (auto& [id, init] : sandboxes.inits_)
      if (auto pid = sys::pid_of(init.get())) sandboxes.cpus_.adopt(id, *pid);
    return sandboxes;
  }
  for (const std::string& id : TRY(sandboxes.cgroups_.list())) {
    auto init = sandboxes.first_process(id);
    if (!init) continue;
    if (auto pid = sys::pid_of(init->get())) sandboxes.cpus_.adopt(id, *pid);
    sandboxes.inits_[id] = std::move(*init);
  }
  return sandboxes;
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

// The lowest: its user namespace is the one most likely to be there already.
Result<uint32_t> Sandboxes::free_range() const {
  if (settings_->rootless) return 0;
  auto found = std::find(taken_.begin(), taken_.end(), false);
  if (found == taken_.end()) {
    return fail(Code::exhausted,
                "all " + std::to_string(kRanges) + " id ranges are in use; delete sandboxes");
  }
  return kFirstId + static_cast<uint32_t>(found - taken_.begin()) * kIdsPerSandbox;
}

void Sandboxes::mark(uint32_t range, bool taken) {
  uint32_t index = (range - kFirstId) / kIdsPerSandbox;
  if (range >= kFirstId && index < kRanges) taken_[index] = taken;
}

Result<int> Sandboxes::user_namespace(uint32_t range) {
  if (settings_->rootless) {
    // One for each sandbox: all have the same ids, only this keeps their process counts and keyrings apart.
    fresh_user_namespace_ = TRY(sys::create_user_namespace(sys::identity_map(sys::mapped_ids())));
    return fresh_user_namespace_.get();
  }
  auto found = user_namespaces_.find(range);
  if (found != user_namespaces_.end()) return found->second.get();
  if (user_namespaces_.size() >= kCachedUserNamespaces)
    user_namespaces_.erase(std::prev(user_namespaces_.end()));
  Fd made = TRY(sys::create_user_namespace(range, kIdsPerSandbox));
  return (user_namespaces_[range] = std::move(made)).get();
}

Result<Fd> Sandboxes::network_namespace() {
  if (spare_networks_.empty()) return sys::create_network_namespace(own_network_.get());
  Fd spare = std::move(spare_networks_.back());
  spare_networks_.pop_back();
  return spare;
}

bool Sandboxes::prepare() {
  if (auto range = free_range(); range && !settings_->rootless) (void)user_namespace(*range);
  if (spare_networks_.size() >= kSpareNetworks) return false;
  auto made = sys::create_network_namespace(own_network_.get());
  if (!made) {
    log::warn("cannot make a spare network namespace", {{"error", made.error().message}});
    return false;
  }
  spare_networks_.push_back(std::move(*made));
  return spare_networks_.size() < kSpareNetworks;
}

Result<Sandboxes::Starting> Sandboxes::start(const Plan& plan) {
  TRY(check(plan));
  Cleanup undo;
  uint32_t range = TRY(free_range());
  mark(range, true);
  undo.push([&] { mark(range, false); });
  std::vector<std::string> layers;
  size_t lowers = 0;
  for (const Step& step : plan.steps) {
    if (step.kind == Step::Kind::overlay) layers.push_back(step.name);
    lowers += step.lowers.size();
  }
  TRY(state_->ensure_lowers(lowers));
  TRY(state_->create_sandbox(plan.id, range, plan.image, layers));
  undo.push([&] { (void)state_->discard(plan.id); });
  Prepared ready = TRY(prepare_steps(plan, *settings_, *state_));
  undo.push([&] { cpus_.release(plan.id); });
  LimitOrder limited = TRY(LimitOrder::make(plan, range, layers, *state_, cgroups_, views_, cpus_));
  sys::CgroupHandles cgroup = TRY(cgroups_.create(plan.id, limited.cgroup()));
  undo.push([&] { (void)cgroups_.remove(plan.id); });
  Fd api = TRY(state_->listen(plan.id, ".api"));
  Fd control = TRY(state_->listen(plan.id, ".control"));
  int user_namespace = TRY(this->user_namespace(range));
  Fd network = TRY(network_namespace());
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd report_read(pipe[0]), report_write(pipe[1]);

  std::vector<int> v1_procs;
  for (const Fd& fd : cgroup.v1_procs) v1_procs.push_back(fd.get());
  ChildOrder order;
  order.steps = ready.steps.data();
  order.step_count = ready.steps.size();
  order.state_dir = settings_->state_dir.c_str();
  limited.fill(order);
  order.first_id = range;
  order.user_namespace = user_namespace;
  order.network_namespace = network.get();
  order.v1_procs = v1_procs.data();
  order.v1_count = v1_procs.size();
  order.seccomp = osb_seccomp_program;
  order.seccomp_bytes = static_cast<size_t>(osb_seccomp_program_end - osb_seccomp_program);
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
  args.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD;
  if (cgroup.v2_directory.valid()) args.flags |= CLONE_INTO_CGROUP;
  args.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup.v2_directory.valid()) args.cgroup = static_cast<uint64_t>(cgroup.v2_directory.get());
  long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) run_child(order);
  if (pid < 0) return fail_errno("clone the sandbox");
  Fd init(pidfd);
  if (settings_->rootless)
    TRY(gate.pass(record_process(settings_->state_dir, plan.id, static_cast<pid_t>(pid))));
  undo.release();

  Starting starting;
  starting.id = plan.id;
  starting.report = std::move(report_read);
  starting.pidfd = std::move(init);
  starting.started = {pid, sys::process_start_ticks(static_cast<pid_t>(pid)).value_or(0)};
  inits_[plan.id] = Fd(::fcntl(pidfd, F_DUPFD_CLOEXEC, 0));
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
  auto found = inits_.find(id);
  if (found != inits_.end()) {
    init = std::move(found->second);
    inits_.erase(found);
  }
  if (settings_->rootless) {
    // With the first process of a pid namespace all others end.
    if (!init.valid()) init = recorded_process(settings_->state_dir, id).value_or(Fd());
    if (init.valid()) TRY(sys::send_signal(init.get(), SIGKILL));
  }
  TRY(cgroups_.kill(id));
  return init;
}

Result<void> Sandboxes::remove(const std::string& id, bool keep_files) {
  TRY(cgroups_.remove(id));
  cpus_.release(id);
  if (keep_files) return {};
  auto range = state_->range_of(id);
  TRY(state_->discard(id));
  if (range) mark(*range, false);
  return {};
}

Result<Fd> Sandboxes::adopt(const std::string& id, pid_t pid, uint64_t start_ticks) {
  auto found = inits_.find(id);
  if (found == inits_.end()) return fail(Code::not_found, "sandbox " + id + " has no process");
  std::vector<pid_t> pids;
  if (settings_->rootless) {
    pids.push_back(TRY(sys::pid_of(found->second.get())));
  } else {
    pids = TRY(cgroups_.processes(id));
  }
  bool in_group = std::find(pids.begin(), pids.end(), pid) != pids.end();
  if (!in_group || TRY(sys::process_start_ticks(pid)) != start_ticks) {
    return fail(Code::not_found, "sandbox " + id + " is not the process that was recorded");
  }
  int copy = ::fcntl(found->second.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail_errno("copy a pidfd");
  return Fd(copy);
}

Result<std::vector<Fd>> Sandboxes::sockets(const std::string& id, size_t count) {
  auto found = inits_.find(id);
  if (found == inits_.end()) return fail(Code::not_found, "sandbox " + id + " has no process");
  if (count == 0 || count > kMaxDescriptors)
    return fail(Code::permission_denied, "refused: too many sockets at once");
  std::vector<Fd> sockets(count);
  TRY(sys::sockets_in_network(found->second.get(), own_network_.get(), sockets.data(),
                              static_cast<int>(count)));
  return sockets;
}

Result<int64_t> Sandboxes::oom_kills(const std::string& id) const {
  TRY(check_id(id));
  return cgroups_.oom_kills(id);
}

Result<void> Sandboxes::freeze(const std::string& id, bool frozen) const {
  TRY(check_id(id));
  return cgroups_.freeze(id, frozen);
}

Result<std::vector<std::string>> Sandboxes::list(const std::string& after) const {
  std::set<std::string> all;
  for (std::string& id : TRY(state_->list())) all.insert(std::move(id));
  for (std::string& id : TRY(cgroups_.list())) all.insert(std::move(id));
  std::vector<std::string> page;
  for (auto it = all.upper_bound(after); it != all.end() && page.size() < kListPage; ++it)
    page.push_back(*it);
  return page;
}

}  // namespace osb::launcher
