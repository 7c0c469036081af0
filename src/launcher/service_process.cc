#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/service.h"
#include "sys/caps.h"

extern char** environ;

namespace osb::launcher {
namespace {

// Above every number that a service is given a descriptor as.
constexpr int kFirstFree = 64;

// All sandboxes together are one group, which weighs as much as one ordinary process. This is three times
// that: whatever they do, a service gets its turn. The launcher itself stays as it is, for what it forks
// becomes sandboxes.
constexpr int kServiceNice = -5;

// Without a launcher a service can do nothing; it must not answer anybody as if it could.
void end_with(pid_t launcher) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have ended before that call, which then never fires.
  if (::getppid() != launcher) ::_exit(1);
}

void become_user(const ServiceSpec& spec, pid_t launcher) {
  if (spec.rights == ServiceSpec::Rights::root) return;
  if (spec.uid != 0) {
    if (::setgroups(spec.groups.size(), spec.groups.data()) < 0 ||
        ::setresgid(spec.gid, spec.gid, spec.gid) < 0 || ::setresuid(spec.uid, spec.uid, spec.uid) < 0)
      ::_exit(126);
    end_with(launcher);  // the change of identity cleared the death signal
  } else if (sys::drop_all_capabilities() < 0) {
    // In a user namespace of our own a service keeps its id, which is root's there, but nothing that root
    // has.
    ::_exit(126);
  }
  // From here on: an ordinary user without capabilities, who cannot get any.
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

[[noreturn]] void run_service(const ServiceSpec& spec, std::vector<ServiceSpec::Given> given, pid_t launcher,
                              char* const* arguments) {
  // The launcher blocks what it reads from a descriptor, and a mask survives exec.
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  end_with(launcher);
  // Without root it may not; then it is an ordinary process among others.
  ::setpriority(PRIO_PROCESS, 0, kServiceNice);
  become_user(spec, launcher);
  int executable = ::fcntl(spec.executable, F_DUPFD_CLOEXEC, kFirstFree);
  // Out of the way first: one may be where another goes.
  for (auto& one : given) one.descriptor = ::fcntl(one.descriptor, F_DUPFD_CLOEXEC, kFirstFree);
  ::syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const auto& one : given) {
    if (::dup2(one.descriptor, one.as) < 0) ::_exit(126);
  }
  static char* const kNothing[] = {nullptr};
  bool inherits = spec.environment == ServiceSpec::Environment::inherited;
  ::syscall(SYS_execveat, executable, "", arguments, inherits ? environ : kNothing, AT_EMPTY_PATH);
  ::_exit(126);
}

}  // namespace

Result<ServiceProcess> spawn_service(const ServiceSpec& spec) {
  Fd ours, theirs;
  auto given = spec.descriptors;
  if (spec.channel_as >= 0) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
      return fail_errno("socketpair");
    ours = Fd(pair[0]);
    theirs = Fd(pair[1]);
    given.push_back({theirs.get(), spec.channel_as});
  }
  std::vector<char*> arguments;
  for (const std::string& word : spec.arguments) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t launcher = ::getpid();
  pid_t pid = ::fork();
  if (pid == 0) run_service(spec, std::move(given), launcher, arguments.data());
  if (pid < 0) return fail_errno("fork the " + spec.name);
  return ServiceProcess{pid, std::move(ours)};
}

}  // namespace osb::launcher
