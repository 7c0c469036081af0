#include "execd/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "base/strings.h"

namespace osb::execd {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr int kOomScoreRaise = 500;
constexpr useconds_t kFirstPause = 20, kLongestPause = 2'000;
constexpr int kScratchBase =
    512;  // where `more` descriptors are parked, above every number the child asks for

rlimit g_open_files{};
bool g_open_files_known = false;

enum class Stage { none, group, descriptors, credentials, cwd, exec };

// Read and written by parent and child, who share memory and never run at the same time.
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

  Stage failed_at = Stage::none;
  int error = 0;
  const char* failed_path = nullptr;
};

// ---- In the child. No allocation, no library state, raw calls where the library would act on all threads.
// ----

bool set_up_group(Plan& plan) {
  if (plan.group == Group::own) return ::setpgid(0, 0) == 0;
  if (::setsid() < 0) return false;
  return plan.group != Group::terminal || ::ioctl(plan.stdio[0], TIOCSCTTY, 0) == 0;
}

bool set_up_descriptors(Plan& plan) {
  for (int target = 0; target < 3; ++target) {
    if (::dup2(plan.stdio[target], target) < 0) return false;
  }
  // A source may have the number of another's target: park all of them first.
  int base = std::max(kScratchBase, plan.max_target + 1);
  int parked[16];
  for (size_t i = 0; i < plan.more_count; ++i) {
    parked[i] = ::fcntl(plan.more[i].first, F_DUPFD_CLOEXEC, base);
    if (parked[i] < 0) return false;
  }
  // Everything of ours is close-on-exec already; this is for what some library of ours may open without it.
  ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
  for (size_t i = 0; i < plan.more_count; ++i) {
    if (::dup2(parked[i], plan.more[i].second) < 0) return false;
  }
  return true;
}

bool set_up_credentials(Plan& plan) {
  const Credentials* c = plan.credentials;
  if (!c) return true;
  return ::syscall(SYS_setgroups, c->groups.size(), c->groups.data()) == 0 &&
         ::syscall(SYS_setresgid, c->gid, c->gid, c->gid) == 0 &&
         ::syscall(SYS_setresuid, c->uid, c->uid, c->uid) == 0;
}

// Like a shell: a candidate that is missing or may not be executed does not end the search.
void execute(Plan& plan) {
  plan.error = ENOENT;
  plan.failed_path = plan.candidates[0];
  for (const char* const* candidate = plan.candidates; *candidate; ++candidate) {
    ::execve(*candidate, plan.argv, plan.env);
    if (errno == ENOENT || errno == ENOTDIR) {
      // The file may be there and its interpreter may be what is missing; that is the better answer.
      if (errno == ENOENT && plan.error == ENOENT && ::access(*candidate, F_OK) == 0) {
        plan.failed_path = *candidate;
        return;
      }
      continue;
    }
    plan.error = errno;
    plan.failed_path = *candidate;
    if (errno != EACCES) return;
  }
}

int child_main(void* argument) {
  Plan& plan = *static_cast<Plan*>(argument);
  auto fail_at = [&](Stage stage) {
    plan.failed_at = stage;
    plan.error = errno;
    ::_exit(127);
  };
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &by_default, nullptr);  // the only one execd changes
  if (!set_up_group(plan)) fail_at(Stage::group);
  if (!set_up_descriptors(plan)) fail_at(Stage::descriptors);
  if (!set_up_credentials(plan)) fail_at(Stage::credentials);
  if (plan.cwd && ::chdir(plan.cwd) < 0) fail_at(Stage::cwd);
  if (g_open_files_known) ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &g_open_files, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  execute(plan);
  plan.failed_at = Stage::exec;
  ::_exit(127);
}

// ---- In the parent. ----

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

SpawnError describe(const Plan& plan, const SpawnRequest& request) {
  SpawnError error{plan.error, request.argv.empty() ? "" : request.argv[0], {}};
  switch (plan.failed_at) {
    case Stage::none:
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
  error.message += ": " + errno_text(plan.error);
  if (plan.failed_at == Stage::credentials)
    error.message += "; a sandbox has the ids in its /proc/self/uid_map and gid_map only";
  struct stat info;
  if (plan.failed_at == Stage::exec && plan.error == ENOENT && ::stat(error.path.c_str(), &info) == 0) {
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

}  // namespace

void remember_open_files_limit() { g_open_files_known = ::getrlimit(RLIMIT_NOFILE, &g_open_files) == 0; }

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

std::expected<pid_t, SpawnError> spawn(const SpawnRequest& request) {
  if (request.argv.empty() || request.argv[0].empty()) {
    return std::unexpected(SpawnError{EINVAL, "", "there is no program to execute"});
  }
  static const int null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  std::vector<std::string> candidates = request.program.empty()
                                            ? executable_candidates(request.argv[0], request.env)
                                            : std::vector<std::string>{request.program};
  std::vector<char*> argv = pointers(request.argv), env = pointers(request.env), tried = pointers(candidates);
  auto or_null = [](int fd) { return fd >= 0 ? fd : null_fd; };
  const int stdio[3] = {or_null(request.in), or_null(request.out), or_null(request.err)};

  Plan plan{};
  plan.argv = argv.data();
  plan.env = env.data();
  plan.candidates = tried.data();
  plan.cwd = request.cwd.empty() ? nullptr : request.cwd.c_str();
  plan.stdio = stdio;
  plan.more = request.more.data();
  plan.more_count = std::min<size_t>(request.more.size(), 16);
  plan.credentials = request.credentials ? &*request.credentials : nullptr;
  plan.group = request.group;
  for (auto [source, target] : request.more) plan.max_target = std::max(plan.max_target, target);

  // No signal may be handled in the child while it stands on our memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  alignas(64) static char stack[32 * 1024];
  pid_t pid = ::clone(child_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &plan);
  int clone_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);

  if (pid < 0) {
    return std::unexpected(
        SpawnError{clone_error, request.argv[0], "start a process: " + errno_text(clone_error)});
  }
  if (plan.failed_at != Stage::none) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return std::unexpected(describe(plan, request));
  }
  raise_oom_score(pid);
  return pid;
}

}  // namespace osb::execd
