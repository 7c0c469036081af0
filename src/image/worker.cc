#include "image/worker.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "image/worker_limits.h"
#include "sys/file_worker.h"
#include "sys/mount.h"
#include "sys/namespaces.h"

namespace osb::image {
namespace {

constexpr int kInputFd = 3, kReportFd = 4, kDirectoryFd = 5;
constexpr size_t kMaxReport = 64 << 20;  // a million opaque directories and their like

// The directory as a detached mount in which the worker's ids are the ids on disk.
Result<Fd> mapped_mount(const std::string& directory, int user_namespace, bool read_only) {
  int mount = sys::clone_mount(AT_FDCWD, directory.c_str());
  if (mount < 0) return fail_errno("copy the mount of " + directory, -mount);
  Fd owned(mount);
  if (int status = sys::idmap_mount(mount, user_namespace); status < 0) {
    return fail_errno("map the ids of " + directory + " (the file system must support id-mapped mounts)",
                      -status);
  }
  uint64_t limits = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  if (read_only) limits |= MOUNT_ATTR_RDONLY;
  if (int status = sys::restrict_mount(mount, limits); status < 0)
    return fail_errno("restrict the mount of " + directory, -status);
  return owned;
}

struct Birth {
  int mount = -1, user_namespace = -1, report = -1;
};

Result<void> step(const char* what, int status) {
  if (status < 0) return fail_errno(what, -status);
  return {};
}

// Input and report at fixed numbers; what the next steps still need far above, everything else closed.
int arrange_descriptors(int input, Birth& birth) {
  constexpr int kAbove = 32;
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  int in = ::fcntl(input >= 0 ? input : null, F_DUPFD_CLOEXEC, kAbove);
  int report = ::fcntl(birth.report, F_DUPFD_CLOEXEC, kAbove);
  int mount = ::fcntl(birth.mount, F_DUPFD_CLOEXEC, kAbove);
  int space = ::fcntl(birth.user_namespace, F_DUPFD_CLOEXEC, kAbove);
  if (null < 0 || in < 0 || report < 0 || mount < 0 || space < 0) return -errno;
  for (int fd : {0, 1, 2}) {
    if (::dup2(null, fd) < 0) return -errno;
  }
  if (::dup2(in, kInputFd) < 0 || ::dup2(report, kReportFd) < 0) return -errno;
  if (::dup2(mount, kReportFd + 1) < 0 || ::dup2(space, kReportFd + 2) < 0) return -errno;
  birth = {kReportFd + 1, kReportFd + 2, kReportFd};
  return check_call(::syscall(SYS_close_range, kReportFd + 3, ~0U, 0));
}

int pivot(int mount, const char* place) {
  if (int status = sys::attach_mount(mount, AT_FDCWD, place); status < 0) return status;
  if (::chdir(place) < 0 || ::syscall(SYS_pivot_root, ".", ".") < 0) return -errno;
  // The host's tree lies on top of the new root now, and goes.
  if (::umount2(".", MNT_DETACH) < 0) return -errno;
  return check_call(::chdir("/"));
}

// The only directory it has, in place of what made it so.
int open_directory() {
  if (::syscall(SYS_close_range, kReportFd + 1, ~0U, 0) < 0) return -errno;
  return check_call(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Result<void> confine(const WorkerOrder& order, Birth& birth) {
  // Rights held here: root of the host, in fresh namespaces.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGXFSZ, SIG_IGN);  // a file that is too large is an error like others
  ::umask(0);
  TRY(step("arrange descriptors", arrange_descriptors(order.input, birth)));
  TRY(step("make mounts private", check_call(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr))));
  TRY(step("pivot", pivot(birth.mount, order.directory.c_str())));
  TRY(step("enter the user namespace", check_call(::setns(birth.user_namespace, CLONE_NEWUSER))));
  // From here on: every capability, but only within a user namespace that owns nothing but the mapped
  // directory.
  TRY(step("change identity", sys::become_root_of_nothing()));
  if (int fd = open_directory(); fd != kDirectoryFd)
    return fail_errno("open the directory", fd < 0 ? -fd : EBADF);
  TRY(step("set limits", set_worker_limits(order.max_file_bytes)));
  TRY(step("drop capabilities", sys::keep_file_capabilities()));
  // The change of identity cleared the death signal.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  TRY(step("set no_new_privs", check_call(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))));
  TRY(step("install the seccomp program", install_worker_seccomp()));
  // From here on: files below "/", memory, threads, the input and the report.
  return {};
}

[[noreturn]] void run_child(const WorkerOrder& order, Birth birth) {
  auto confined = confine(order, birth);
  WorkerReport report(birth.report);
  if (!confined) {
    report.failure(std::move(confined.error()).in("confine the worker"));
    ::_exit(1);
  }
  order.job(kInputFd, kDirectoryFd, report);
  ::_exit(0);
}

// The worker's lines so far, cut and looked at.
struct Hearing {
  const WorkerWatch& watch;
  std::string pending;
  std::optional<Result<std::string>> outcome;
  size_t total = 0;

  void hear(std::string_view bytes) {
    total += bytes.size();
    pending += bytes;
    size_t end;
    while (!outcome && (end = pending.find('\n')) != pending.npos) {
      line(std::string_view(pending).substr(0, end));
      pending.erase(0, end + 1);
    }
  }

  void line(std::string_view text) {
    char kind = text.empty() ? ' ' : text[0];
    text.remove_prefix(std::min<size_t>(1, text.size()));
    if (kind == 'p') {
      size_t blank = text.find(' ');
      auto bytes = parse_number<uint64_t>(text.substr(0, blank));
      auto entries = blank == text.npos ? std::nullopt : parse_number<uint64_t>(text.substr(blank + 1));
      if (bytes && entries && watch.progress) watch.progress(*bytes, *entries);
    } else if (kind == 'r') {
      outcome = std::string(text);
    } else if (kind == 'e') {
      size_t blank = text.find(' ');
      auto code = parse_number<int>(text.substr(0, blank));
      bool known = code && *code >= 0 && *code <= static_cast<int>(Code::internal) && blank != text.npos;
      outcome = fail(known ? static_cast<Code>(*code) : Code::internal,
                     known ? std::string(text.substr(blank + 1, 1000)) : "the worker spoke nonsense");
    }
  }
};

Result<std::string> listen(int report, const WorkerWatch& watch) {
  Hearing hearing{watch, {}, {}, 0};
  std::string buffer(64 << 10, '\0');
  while (true) {
    struct pollfd fds[2] = {{report, POLLIN, 0}, {watch.cancel_fd, POLLIN, 0}};
    if (::poll(fds, watch.cancel_fd < 0 ? 1 : 2, -1) < 0 && errno != EINTR) return fail_errno("poll");
    if (fds[1].revents && watch.cancel_fd >= 0) return fail(Code::cancelled, "interrupted");
    if (!fds[0].revents) continue;
    ssize_t n = ::read(report, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("read the worker's report");
    if (n == 0) break;
    hearing.hear(std::string_view(buffer).substr(0, static_cast<size_t>(n)));
    if (hearing.total > kMaxReport) return fail(Code::too_large, "the worker's report does not end");
  }
  if (hearing.outcome) return std::move(*hearing.outcome);
  return fail(Code::internal, "the worker ended without a word");
}

}  // namespace

void WorkerReport::line(char kind, std::string_view text) {
  std::string out(1, kind);
  out += text;
  for (char& c : out) {
    if (c == '\n') c = ' ';
  }
  out.push_back('\n');
  (void)write_all(fd_, out);
}

void WorkerReport::progress(uint64_t bytes, uint64_t entries) {
  line('p', std::to_string(bytes) + " " + std::to_string(entries));
}
void WorkerReport::result(std::string_view text) { line('r', text); }
void WorkerReport::failure(const Error& error) {
  line('e', std::to_string(static_cast<int>(error.code)) + " " + error.message);
}

Result<std::string> run_worker(const WorkerOrder& order, const WorkerWatch& watch) {
  Fd user_namespace = TRY(sys::create_user_namespace(kWorkerFirstId, kWorkerIds));
  Fd mount = TRY(mapped_mount(order.directory, user_namespace.get(), order.read_only));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd report(pipe[0]), theirs(pipe[1]);
  Birth birth{mount.get(), user_namespace.get(), theirs.get()};

  pid_t pid = sys::clone_file_worker();
  if (pid == 0) run_child(order, birth);
  if (pid < 0) return fail_errno("clone the worker", -pid);
  theirs.reset();
  auto outcome = listen(report.get(), watch);
  // Also when it is done: whatever it still does is not wanted.
  ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!outcome && outcome.error().code == Code::internal && WIFSIGNALED(status) &&
      WTERMSIG(status) == SIGSYS) {
    outcome.error().message += ": it made a system call that it may not make";
  }
  return outcome;
}

}  // namespace osb::image
