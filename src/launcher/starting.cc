#include "launcher/starting.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/cleanup.h"
#include "launcher/checks.h"
#include "launcher/child.h"
#include "launcher/limit_order.h"
#include "launcher/network_notes.h"
#include "launcher/ready_steps.h"
#include "launcher/records.h"
#include "launcher/rootless.h"
#include "launcher/runsc_bundle.h"
#include "launcher/runsc_child.h"
#include "sys/file_privileges.h"
#include "sys/process.h"

extern "C" const unsigned char osb_seccomp_program[];
extern "C" const unsigned char osb_seccomp_program_end[];

namespace osb::launcher {
namespace {

// What the new process gets; its order borrows from this.
struct Parts {
  ReadySteps steps;
  LimitOrder limits;
  std::vector<sock_filter> modes_seccomp;  // of a sandbox that writes as the host's root
  sys::CgroupHandles groups;
  std::vector<int> v1_procs;
  Fd api, control;
  Fd report_read, report_write;
  int user_namespace = -1;
  Gate gate;  // without root
  // With another kernel than the host's.
  Fd null;
  std::string runsc_config;
  std::vector<std::string> runsc_words;
  std::vector<const char*> runsc_arguments;
};

Result<void> check_runsc(const Settings& settings) {
  if (settings.runsc_fd < 0) return fail(Code::unsupported, "this service was started without runsc");
  if (settings.rootless) return fail(Code::unsupported, "a service without root has no runsc");
  return {};
}

Result<void> add_runsc(const Plan& plan, const Place& place, const Settings& settings, Parts& parts) {
  TRY(check_runsc(settings));
  if (!place.from_nothing)
    return fail(Code::unsupported,
                "the kernel of this host does not make overlays of descriptors, which runsc needs");
  parts.null = TRY(open_at(AT_FDCWD, "/dev/null", O_RDWR));
  parts.runsc_config = runsc_config(plan, place.range);
  parts.runsc_words = runsc_arguments(settings.runsc_platform);
  for (const std::string& word : parts.runsc_words) parts.runsc_arguments.push_back(word.c_str());
  parts.runsc_arguments.push_back(nullptr);
  return {};
}

ReadySteps::Ahead made_ahead(const Place& place, const Network& network) {
  ReadySteps::Ahead ahead;
  if (place.from_nothing) {
    ahead.sysfs = network.sysfs.get();
    ahead.sysfs_tree = network.tree.get();
  }
  if (place.root) {
    ahead.root = &*place.root;
    ahead.devices = place.root->devices.get();
  } else if (place.from_nothing) {
    ahead.disk = ReadySteps::Ahead::Disk::detached;
  }
  return ahead;
}

Result<Parts> make_parts(const Plan& plan, const Place& place, const Network& network, const Workshop& with,
                         Cleanup& undo) {
  Parts parts;
  parts.steps = TRY(ReadySteps::make(plan, place.layers, made_ahead(place, network), place.range,
                                     {with.settings, with.state, with.volumes}));
  if (parts.steps.writes_as_root()) parts.modes_seccomp = TRY(sys::refuse_privileged_modes());
  undo.push([&plan, &with] { with.cpus.release(plan.id); });
  parts.limits =
      TRY(LimitOrder::make(plan, place.range, overlay_names(plan), with.state, with.views, with.cpus));
  const sys::CgroupLimits& limits = parts.limits.cgroup();
  parts.groups = TRY(with.cgroups.create(
      plan.id, with.settings.rootless ? enforceable(limits, with.cgroups.layout()) : limits));
  undo.push([&plan, &with] { (void)with.cgroups.remove(plan.id); });
  for (const Fd& fd : parts.groups.v1_procs) parts.v1_procs.push_back(fd.get());
  TRY(parts.limits.add_groups(plan, with.cgroups));
  parts.api = TRY(with.state.listen(plan.id, ".api"));
  parts.control = TRY(with.state.listen(plan.id, ".control"));
  parts.user_namespace = TRY(with.spares.user_namespace(place.range));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno("pipe");
  parts.report_read = Fd(pipe[0]);
  parts.report_write = Fd(pipe[1]);
  if (with.settings.rootless) parts.gate = TRY(Gate::create());
  if (plan.kernel == Plan::Kernel::runsc) TRY(add_runsc(plan, place, with.settings, parts));
  return parts;
}

ChildOrder make_order(const Plan& plan, const Place& place, const Network& network, const Parts& parts,
                      const Workshop& with, RunscOrder& runsc) {
  ChildOrder order;
  order.steps = parts.steps.data();
  order.step_count = parts.steps.size();
  if (place.from_nothing) order.nothing = with.spares.nothing();
  order.state_dir = with.settings.state_dir.c_str();
  parts.limits.fill(order);
  order.first_id = place.range;
  order.user_namespace = parts.user_namespace;
  order.network_namespace = network.space.get();
  order.v1_procs = parts.v1_procs.data();
  order.v1_count = parts.v1_procs.size();
  order.daemon_group = parts.groups.daemon.get();
  order.work_group = parts.groups.work.get();
  order.first_in_group =
      !with.settings.rootless && with.cgroups.layout().cpu.version != sys::Controller::Version::none;
  order.seccomp = osb_seccomp_program;
  order.seccomp_bytes = static_cast<size_t>(osb_seccomp_program_end - osb_seccomp_program);
  if (!parts.modes_seccomp.empty()) {
    order.modes_seccomp = parts.modes_seccomp.data();
    order.modes_seccomp_bytes = parts.modes_seccomp.size() * sizeof(sock_filter);
  }
  order.shm_bytes = plan.shm_bytes.value_or(0);
  order.sized = plan.limits.memory_bytes.has_value();
  order.execd = with.settings.execd_fd;
  order.api_listener = parts.api.get();
  order.control_listener = parts.control.get();
  order.report = parts.report_write.get();
  if (plan.kernel == Plan::Kernel::runsc) {
    runsc = {.executable = with.settings.runsc_fd,
             .null = parts.null.get(),
             .config = parts.runsc_config.data(),
             .config_bytes = parts.runsc_config.size(),
             .arguments = parts.runsc_arguments.data()};
    order.runsc = &runsc;
  }
  if (with.settings.rootless) {
    order.rootless = true;
    order.go = parts.gate.wait.get();
    order.go_writer = parts.gate.open.get();
    order.processes = plan.limits.pids.value_or(0);
  }
  return order;
}

struct Cloned {
  pid_t pid = -1;
  Fd pidfd;
};

Result<Cloned> clone_child(const ChildOrder& order, const sys::CgroupHandles& groups) {
  int pidfd = -1;
  struct clone_args args{};
  // The others it enters by itself: network and user namespaces are made ahead, the mount namespace starts
  // from one that is, and a cgroup namespace begins at the groups that its maker is in, which of version 1 it
  // has to join.
  args.flags = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD;
  if (groups.v2_directory.valid()) {
    // Born in its group: there is no moment in which it could be missed by a kill, and no move to wait for.
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(groups.v2_directory.get());
  }
  args.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) run_child(order);
  if (pid < 0) return fail_errno("clone the sandbox");
  return Cloned{static_cast<pid_t>(pid), Fd(pidfd)};
}

// A directory of root's that is not written by sandboxes.
Error explain_look(const ChildFailure& failure, const Plan& plan) {
  size_t at = failure.step - kLookStage;
  std::string what = (at < plan.steps.size() ? plan.steps[at].target : std::string("?")) + ": ";
  constexpr char kRemedy[] = "; or give the directory to others (chown -R USER:GROUP), or mount it read-only";
  switch (failure.error) {
    case EPERM:
      what +=
          "the directory belongs to root, and in it are programs that act as root (a set-user-id or "
          "set-group-id bit, or capabilities), which a sandbox could change; take these away";
      break;
    case E2BIG:
    case ELOOP:
      what +=
          "the directory belongs to root and has too much in it to look for programs that act as root: mount "
          "a part of it";
      break;
    default:
      return {code_from_errno(failure.error), failure.error,
              what + "look for programs that act as root: " + errno_text(failure.error)};
  }
  return {Code::permission_denied, 0, what + kRemedy};
}

std::string describe(const ChildFailure& failure, const Plan& plan) {
  std::string step =
      failure.step < plan.steps.size()
          ? "step " + std::to_string(failure.step + 1) + " (" + to_text(plan.steps[failure.step]) + ")"
          : std::string(to_string(static_cast<Stage>(failure.step - kFixedStage)));
  return step + ": " + errno_text(failure.error);
}

}  // namespace

Result<Starting> start_process(const Plan& plan, const Workshop& with) {
  TRY(check(plan));
  // What has no id of its own yet must not be undone.
  if (with.state.range_of(plan.id)) return fail(Code::already_exists, "there is a sandbox " + plan.id);
  Cleanup undo;
  Place place = TRY(with.spares.make_place(plan, undo));
  // Before any of them is opened: who removes volumes looks there.
  TRY(with.volumes.note(plan));
  Network network = TRY(with.spares.take_network());
  Parts parts = TRY(make_parts(plan, place, network, with, undo));
  // A later launcher, which may have an egress process where this one has none, must not take it for one that
  // may reach everything.
  if (plan.network.kind != PlanNetwork::Kind::open)
    TRY(write_network_note(TRY(with.state.open_sandbox(plan.id)).get(), plan.network.kind));
  RunscOrder runsc;
  Cloned child = TRY(clone_child(make_order(plan, place, network, parts, with, runsc), parts.groups));
  // Runs before everything else that is undone: a group with a process in it cannot be removed.
  undo.push([pid = child.pid] {
    ::kill(pid, SIGKILL);  // ours and not waited for: the number is still its own
    ::waitpid(pid, nullptr, __WALL);
  });
  // While the new process makes itself at home. Nobody is told of it before this is written.
  if (!plan.record.empty()) TRY(write_record(TRY(with.state.open_sandbox(plan.id)).get(), plan.record));
  if (with.settings.rootless)
    TRY(parts.gate.pass(record_process(with.settings.state_dir, plan.id, child.pid)));
  undo.release();
  with.spares.lend(plan, std::move(place), std::move(network));
  Started started{child.pid, sys::process_start_ticks(child.pid).value_or(0)};
  return Starting{plan.id, std::move(parts.report_read), std::move(child.pidfd), started};
}

Result<Fd> finish_start(Starting& starting, const Plan& plan) {
  ChildFailure failure;
  ssize_t n = ::read(starting.report.get(), &failure, sizeof failure);
  if (n == 0) {
    // The pipe also closes when the process was killed before its exec.
    struct pollfd gone{starting.pidfd.get(), POLLIN, 0};
    if (::poll(&gone, 1, 0) == 0) return std::move(starting.pidfd);
    return fail(Code::internal, "the sandbox's first process was killed while it was being set up");
  }
  if (n != sizeof failure) return fail(Code::internal, "the sandbox's first process reported nonsense");
  if (failure.step >= kLookStage) return std::unexpected(explain_look(failure, plan));
  return std::unexpected(Error{code_from_errno(failure.error), failure.error, describe(failure, plan)});
}

}  // namespace osb::launcher
