#include "registry/fetcher_process.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "registry/fetcher.h"

namespace osb::registry {
namespace {

constexpr rlim_t kMostMemory = 2ull << 30, kMostFile = 64ull << 30;

void limit(int what, rlim_t most) {
  struct rlimit both{most, most};
  if (::setrlimit(static_cast<__rlimit_resource>(what), &both) < 0) ::_exit(126);
}

// Rights held here: root's. None is left when the program starts.
[[noreturn]] void become_fetcher(int executable, int directory, const std::vector<int>& files, int socket,
                                 pid_t keeper) {
  if (::setgroups(0, nullptr) < 0 || ::setresgid(kFetcherId, kFetcherId, kFetcherId) < 0 ||
      ::setresuid(kFetcherId, kFetcherId, kFetcherId) < 0)
    ::_exit(126);
  // From here on: an id that owns one directory. The change of identity took every capability with it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper) ::_exit(1);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) ::_exit(126);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_AS, kMostMemory);
  limit(RLIMIT_FSIZE, kMostFile);
  ::umask(077);
  const int kAbove = 64 + kFetcherFirstFileFd + static_cast<int>(files.size());
  std::vector<int> moved;
  for (int file : files) moved.push_back(::fcntl(file, F_DUPFD_CLOEXEC, kAbove));
  int program = ::fcntl(executable, F_DUPFD_CLOEXEC, kAbove),
      dir = ::fcntl(directory, F_DUPFD_CLOEXEC, kAbove), talk = ::fcntl(socket, F_DUPFD_CLOEXEC, kAbove),
      null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
  if (::dup2(null, 0) < 0 || ::dup2(null, 1) < 0 || ::dup2(talk, kFetcherSocketFd) < 0 ||
      ::dup2(dir, kFetcherDirectoryFd) < 0)
    ::_exit(126);
  for (size_t i = 0; i < moved.size(); ++i) {
    if (::dup2(moved[i], kFetcherFirstFileFd + static_cast<int>(i)) < 0) ::_exit(126);
  }
  // A fresh program with a fresh memory: ours has the configuration in it, key and all.
  char* const arguments[] = {const_cast<char*>("osb"), const_cast<char*>("image-fetcher"), nullptr};
  char* const environment[] = {const_cast<char*>("PATH=/usr/bin:/bin"), nullptr};
  ::syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH);
  ::_exit(126);
}

}  // namespace

Result<FetcherProcess> FetcherProcess::start(int executable, int directory, const std::vector<int>& files) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return fail_errno("socketpair");
  Fd ours(pair[0]), theirs(pair[1]);
  pid_t keeper = ::getpid(), pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) become_fetcher(executable, directory, files, theirs.get(), keeper);
  return FetcherProcess(std::move(ours), pid);
}

FetcherProcess::~FetcherProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace osb::registry
