#include "launcher/server_process.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "sys/caps.h"

extern char** environ;

namespace osb::launcher {
namespace {

[[noreturn]] void run_server(const Settings& settings, int channel, pid_t launcher, char* const* arguments) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Without a launcher the server can do nothing; it must not answer clients as if it could.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(1);
  if (settings.service_uid != 0) {
    if (::setgroups(0, nullptr) < 0 ||
        ::setresgid(settings.service_gid, settings.service_gid, settings.service_gid) < 0 ||
        ::setresuid(settings.service_uid, settings.service_uid, settings.service_uid) < 0) {
      ::_exit(126);
    }
    // The change of identity cleared the death signal.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launcher) ::_exit(1);
  }
  // In a user namespace of our own the server keeps its id, which is root's there, but nothing that root has.
  if (settings.rootless && sys::drop_all_capabilities() < 0) ::_exit(126);
  // From here on: an ordinary user without capabilities, who cannot get any.
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  int listener = ::fcntl(settings.listener_fd, F_DUPFD_CLOEXEC, 16);
  int own = ::fcntl(channel, F_DUPFD_CLOEXEC, 16);
  int executable = ::fcntl(settings.server_fd, F_DUPFD_CLOEXEC, 16);
  if (::dup2(listener, kServerListenerFd) < 0 || ::dup2(own, kServerLauncherFd) < 0) ::_exit(126);
  ::syscall(SYS_close_range, 5, ~0U, CLOSE_RANGE_CLOEXEC);
  ::syscall(SYS_execveat, executable, "", arguments, environ, AT_EMPTY_PATH);
  ::_exit(126);
}

}  // namespace

Result<ServerProcess> start_server(const Settings& settings) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
    return fail_errno("socketpair");
  Fd ours(pair[0]), theirs(pair[1]);
  std::vector<char*> arguments;
  for (const std::string& word : settings.server) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t launcher = ::getpid();
  pid_t pid = ::fork();
  if (pid == 0) run_server(settings, theirs.get(), launcher, arguments.data());
  if (pid < 0) return fail_errno("fork the server");
  return ServerProcess{pid, std::move(ours)};
}

}  // namespace osb::launcher
