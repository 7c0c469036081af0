#include "execd/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string_view>

#include "base/default_path.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/strings.h"
#include "execd/raw_call.h"
#include "sys/short_turns.h"

namespace osb::execd {
namespace {

constexpr int kOomScoreRaise = 500;
constexpr useconds_t kFirstPause = 20, kLongestPause = 2'000;
constexpr size_t kMostDescriptors = 16, kStackBytes = 32 * 1024;
constexpr auto kLongestWait = std::chrono::milliseconds(100);

rlimit g_open_files{};
bool g_open_files_known = false;
int g_work_group = -1;
std::optional<int> g_work_nice;
std::optional<sys::Turns> g_usual_turns;
bool g_kernel_waits = false;

enum class Stage { none, work, group, descriptors, credentials, cwd, exec };

// Written by the child, read by the parent once the child has left this memory.
struct Plan {
  char* const* argv;
  char* const* env;
  const char* const* candidates;  // ends with null
  const char* cwd;
  const int* stdio;  // three
  const std::pair<int, int>* more;
  size_t more_count;
  int max_target;
  const Credentials* credentials;
  Group group;
  bool gathers_orphans;

  Stage failed_at = Stage::none;
  int error = 0;
  const char* failed_path = nullptr;
};

// Everything that a child stands on until it is a program of its own.
struct Start {
  SpawnRequest request;
  std::vector<std::string> candidates;
  std::vector<char*> argv, env, tried;
  int stdio[3];
  Plan plan{};
  std::unique_ptr<char[]> stack;
  // The kernel makes it 0 and wakes us when the child leaves this memory, by exec or by its end.
  std::atomic<uint32_t> in_our_memory{1};
};

// ---- In the child. No allocation and no library calls: raw_call.h says why. ----

// False when it failed; then the error is noted.
bool did(Plan& plan, long result) {
  if (result >= 0) return true;
  plan.error = static_cast<int>(-result);
  return false;
}

// From here on it is one of the sandbox's processes and no part of the daemon: where their cpu is limited,
// they have a group of their own.
bool join_work(Plan& plan) {
  if (g_work_group >= 0 && !did(plan, raw_call(SYS_write, g_work_group, raw_pointer("0"), 1))) return false;
  if (plan.gathers_orphans) raw_call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);
  return true;
}

bool set_up_group(Plan& plan) {
  if (plan.group == Group::own) return did(plan, raw_call(SYS_setpgid, 0, 0));
  if (!did(plan, raw_call(SYS_setsid))) return false;
  return plan.group != Group::terminal || did(plan, raw_call(SYS_ioctl, plan.stdio[0], TIOCSCTTY, 0));
}

bool copy_descriptor(Plan& plan, int from, int to) {
  return from == to || did(plan, raw_call(SYS_dup3, from, to, 0));
}

bool set_up_descriptors(Plan& plan) {
  for (int target = 0; target < 3; ++target) {
    if (!copy_descriptor(plan, plan.stdio[target], target)) return false;
  }
  // A source may have the number of another's target: park all of them first, above every number that is
  // asked for and no higher, for there may not be many.
  int base = std::max(3, plan.max_target + 1);
  int parked[kMostDescriptors];
  for (size_t i = 0; i < plan.more_count; ++i) {
    parked[i] = static_cast<int>(raw_call(SYS_fcntl, plan.more[i].first, F_DUPFD_CLOEXEC, base));
    if (!did(plan, parked[i])) return false;
  }
  // Everything of ours is close-on-exec already; this is for what some library of ours may open without it.
  raw_call(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
  for (size_t i = 0; i < plan.more_count; ++i) {
    if (!copy_descriptor(plan, parked[i], plan.more[i].second)) return false;
  }
  return true;
}

bool set_up_credentials(Plan& plan) {
  const Credentials* c = plan.credentials;
  if (!c) return true;
  // In this order: whoever has become another user may not change groups any more.
  return did(plan,
             raw_call(SYS_setgroups, static_cast<long>(c->groups.size()), raw_pointer(c->groups.data()))) &&
         did(plan, raw_call(SYS_setresgid, c->gid, c->gid, c->gid)) &&
         did(plan, raw_call(SYS_setresuid, c->uid, c->uid, c->uid));
}

// Like a shell: a candidate that is missing or may not be executed does not end the search.
void execute(Plan& plan) {
  plan.error = ENOENT;
  plan.failed_path = plan.candidates[0];
  for (const char* const* candidate = plan.candidates; *candidate; ++candidate) {
    // A look costs less than the attempt, and the program is seldom in the first directory.
    long there = raw_call(SYS_faccessat, AT_FDCWD, raw_pointer(*candidate), F_OK);
    if (there == -ENOENT || there == -ENOTDIR) continue;
    long error =
        -raw_call(SYS_execve, raw_pointer(*candidate), raw_pointer(plan.argv), raw_pointer(plan.env));
    if (error == ENOENT || error == ENOTDIR) {
      // The file may be there and its interpreter may be what is missing; that is the better answer.
      bool exists = raw_call(SYS_faccessat, AT_FDCWD, raw_pointer(*candidate), F_OK) == 0;
      if (error == ENOENT && plan.error == ENOENT && exists) {
        plan.failed_path = *candidate;
        return;
      }
      continue;
    }
    plan.error = static_cast<int>(error);
    plan.failed_path = *candidate;
    if (error != EACCES) return;
  }
}

void reset_signals() {
  constexpr size_t kMaskBytes = 8;
  // The kernel's own form: handler, flags, restorer and mask, all of which are 0 for what is by default.
  const uint64_t by_default[4] = {}, none = 0;
  raw_call(SYS_rt_sigaction, SIGPIPE, raw_pointer(by_default), 0, kMaskBytes);  // the only one execd changes
  raw_call(SYS_rt_sigprocmask, SIG_SETMASK, raw_pointer(&none), 0, kMaskBytes);
}

int child_main(void* argument) {
  Plan& plan = *static_cast<Plan*>(argument);
  auto end_at = [&](Stage stage) {
    plan.failed_at = stage;
    raw_call(SYS_exit_group, 127);
  };
  // First of all: what it does and forks from here on is charged to the sandbox's work.
  if (!join_work(plan)) end_at(Stage::work);
  if (!set_up_group(plan)) end_at(Stage::group);
  if (!set_up_descriptors(plan)) end_at(Stage::descriptors);
  if (!set_up_credentials(plan)) end_at(Stage::credentials);
  if (plan.cwd && !did(plan, raw_call(SYS_chdir, raw_pointer(plan.cwd)))) end_at(Stage::cwd);
  // After the descriptors: they are parked above the numbers asked for, where the limit may be already.
  if (g_open_files_known) raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, raw_pointer(&g_open_files), 0);
  if (g_work_nice) raw_call(SYS_setpriority, PRIO_PROCESS, 0, *g_work_nice);
  if (g_usual_turns) raw_call(SYS_sched_setattr, 0, raw_pointer(&*g_usual_turns), 0);
  reset_signals();
  execute(plan);
  end_at(Stage::exec);
  return 127;
}

// ---- In the parent. ----

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

// A name was looked for, and nothing was found: the first place is no better an answer than the others.
bool is_in_no_directory(const Plan& plan, const SpawnRequest& request) {
  if (!request.program.empty() || request.argv[0].find('/') != std::string::npos) return false;
  struct stat info;
  return ::stat(plan.failed_path, &info) < 0;
}

SpawnError describe(const Plan& plan, const SpawnRequest& request) {
  SpawnError error{plan.error, request.argv.empty() ? "" : request.argv[0], {}};
  switch (plan.failed_at) {
    case Stage::none:
    case Stage::work:
      error.message = "join the group of the sandbox's processes";
      break;
    case Stage::group:
      error.message = "create a process group";
      break;
    case Stage::descriptors:
      error.message = "set up descriptors";
      break;
    case Stage::credentials:
      error.message = "switch to uid " + std::to_string(request.credentials->uid) + " and gid " +
                      std::to_string(request.credentials->gid);
      break;
    case Stage::cwd:
      error.path = request.cwd;
      error.message = "enter " + request.cwd;
      break;
    case Stage::exec:
      error.path = plan.failed_path ? plan.failed_path : error.path;
      error.message = "exec " + error.path;
      break;
  }
  bool is_nowhere =
      plan.failed_at == Stage::exec && plan.error == ENOENT && is_in_no_directory(plan, request);
  if (is_nowhere) {
    error.path = request.argv[0];
    error.message = "exec " + error.path;
  }
  error.message += ": " + errno_text(plan.error) + (is_nowhere ? " (it is in no directory of PATH)" : "");
  if (plan.failed_at == Stage::credentials)
    error.message += "; a sandbox has the ids in its /proc/self/uid_map and gid_map only";
  struct stat info;
  if (plan.failed_at == Stage::exec && plan.error == ENOENT && !is_nowhere &&
      ::stat(error.path.c_str(), &info) == 0) {
    error.message += " (the file exists, but the interpreter it names does not)";
  }
  if (plan.failed_at == Stage::exec && plan.error == ENOEXEC) {
    error.message += " (no program for this machine, or a script without a '#!' line)";
  }
  return error;
}

// execd itself must be the last one that an out-of-memory kill takes. A child's value can only be written
// from here: execd is not dumpable, so its own /proc entry (which the child shares until exec) does not
// belong to it.
void raise_oom_score(pid_t pid) {
  static const std::string value = [] {
    auto own = read_file("/proc/self/oom_score_adj", 64);
    int score = own ? parse_number<int>(trim(*own)).value_or(0) : 0;
    return std::to_string(std::min(score + kOomScoreRaise, 1000));
  }();
  std::string path = "/proc/" + std::to_string(pid) + "/oom_score_adj";
  // We may run a moment before the child's /proc entry belongs to its new program. For a program that nobody
  // may read it never does.
  for (useconds_t pause = kFirstPause; pause < kLongestPause; pause *= 2) {
    auto written = write_file(path, value);
    if (written || written.error().code != Code::permission_denied) return;
    ::usleep(pause);
  }
}

std::unique_ptr<char[]>& spare_stack() {
  static std::unique_ptr<char[]> stack;
  return stack;
}

std::unique_ptr<Start> prepare(SpawnRequest request) {
  // Tried again when there was no descriptor to be had for it.
  static int null_fd = -1;
  if (null_fd < 0) null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  auto start = std::make_unique<Start>();
  start->request = std::move(request);
  const SpawnRequest& wanted = start->request;
  start->candidates = wanted.program.empty() ? executable_candidates(wanted.argv[0], wanted.env)
                                             : std::vector<std::string>{wanted.program};
  start->argv = pointers(wanted.argv);
  start->env = pointers(wanted.env);
  start->tried = pointers(start->candidates);
  start->stack = std::move(spare_stack());
  if (!start->stack) start->stack.reset(new char[kStackBytes]);
  int given[3] = {wanted.in, wanted.out, wanted.err};
  for (int i = 0; i < 3; ++i) start->stdio[i] = given[i] >= 0 ? given[i] : null_fd;

  Plan& plan = start->plan;
  plan.argv = start->argv.data();
  plan.env = start->env.data();
  plan.candidates = start->tried.data();
  plan.cwd = wanted.cwd.empty() ? nullptr : wanted.cwd.c_str();
  plan.stdio = start->stdio;
  plan.more = wanted.more.data();
  plan.more_count = std::min<size_t>(wanted.more.size(), kMostDescriptors);
  plan.credentials = wanted.credentials ? &*wanted.credentials : nullptr;
  plan.group = wanted.group;
  plan.gathers_orphans = wanted.gathers_orphans;
  for (auto [source, target] : wanted.more) plan.max_target = std::max(plan.max_target, target);
  return start;
}

// Like the end of a vfork, but only for a while: a child that gets no processor, or that some process of the
// sandbox has stopped, must not stop the daemon.
bool wait_until_gone(std::atomic<uint32_t>& in_our_memory) {
  auto deadline = std::chrono::steady_clock::now() + kLongestWait;
  while (in_our_memory.load(std::memory_order_acquire) != 0) {
    auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    timespec limit{0, std::chrono::nanoseconds(left).count()};
    // Not a private one: the kernel wakes it from the child's exit or exec.
    ::syscall(SYS_futex, &in_our_memory, FUTEX_WAIT, 1, &limit, nullptr, 0);
  }
  return true;
}

struct LateOne {
  pid_t pid;
  std::unique_ptr<Start> start;
};
std::vector<LateOne>& late_ones() {
  static std::vector<LateOne> list;
  return list;
}

void look_after_late_ones() {
  std::erase_if(late_ones(), [](LateOne& late) {
    if (late.start->in_our_memory.load(std::memory_order_acquire) != 0) return false;
    raise_oom_score(late.pid);
    return true;
  });
}

}  // namespace

void place_children(int work_group, std::optional<int> nice) {
  g_work_group = work_group;
  if (work_group >= 0) ::fcntl(work_group, F_SETFD, FD_CLOEXEC);
  g_work_nice = nice;
  if (g_usual_turns && nice) g_usual_turns->nice = *nice;
}

void give_usual_turns() {
  g_usual_turns.emplace();
  g_usual_turns->nice = ::getpriority(PRIO_PROCESS, 0);
}

void let_kernel_wait() { g_kernel_waits = true; }

void remember_open_files_limit() { g_open_files_known = ::getrlimit(RLIMIT_NOFILE, &g_open_files) == 0; }

void limit_open_files(uint64_t most) {
  g_open_files = {most, most};
  g_open_files_known = true;
}

uint64_t open_files_limit() {
  rlimit own{};
  if (g_open_files_known) return g_open_files.rlim_cur;
  return ::getrlimit(RLIMIT_NOFILE, &own) == 0 ? own.rlim_cur : RLIM_INFINITY;
}

std::vector<std::string> executable_candidates(const std::string& name, const std::vector<std::string>& env) {
  if (name.find('/') != name.npos) return {name};
  std::string_view path = kDefaultPath;
  for (const std::string& entry : env) {
    if (entry.starts_with("PATH=")) path = std::string_view(entry).substr(5);
  }
  std::vector<std::string> out;
  for (std::string_view dir : split(path, ':')) {
    out.push_back(dir.empty() ? "./" + name : std::string(dir) + "/" + name);
  }
  return out;
}

std::expected<pid_t, SpawnError> spawn(SpawnRequest request) {
  if (request.argv.empty() || request.argv[0].empty()) {
    return std::unexpected(SpawnError{EINVAL, "", "there is no program to execute"});
  }
  look_after_late_ones();
  auto start = prepare(std::move(request));

  // No signal may be handled in the child while it stands on our memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int flags = CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD | (g_kernel_waits ? CLONE_VFORK : 0);
  pid_t pid = ::clone(child_main, start->stack.get() + kStackBytes, flags, &start->plan, nullptr, nullptr,
                      &start->in_our_memory);
  int clone_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);

  if (pid < 0) {
    return std::unexpected(
        SpawnError{clone_error, start->request.argv[0], "start a process: " + errno_text(clone_error)});
  }
  if (!g_kernel_waits && !wait_until_gone(start->in_our_memory)) {
    late_ones().push_back({pid, std::move(start)});
    return pid;
  }
  // One that failed is reaped like every orphan: its end may take as long as its beginning.
  if (start->plan.failed_at != Stage::none) return std::unexpected(describe(start->plan, start->request));
  raise_oom_score(pid);
  spare_stack() = std::move(start->stack);
  return pid;
}

}  // namespace osb::execd
