#include "launcher/runsc_child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "launcher/runsc_bundle.h"
#include "sys/caps.h"
#include "sys/descriptors.h"
#include "sys/mount.h"
#include "sys/seccomp.h"

namespace osb::launcher {
namespace {

// Less than the server waits for the launcher, so that it hears why.
constexpr int kStartMillis = 25'000;
constexpr size_t kMostSaid = 2048;
constexpr int kMostAttempts = 50;
constexpr int kHighDescriptor = 511;

struct Guard {
  int channel = -1;  // to execd inside
  int said = -1;     // what runsc prints
  int runsc = -1;    // a pidfd
  pid_t pid = -1;
  char text[kMostSaid] = {};
  size_t size = 0;
};

[[noreturn]] void give_up(const ChildOrder& order, Stage stage, int negative_errno) {
  ChildFailure failure{kFixedStage + static_cast<uint32_t>(stage), -negative_errno};
  (void)!::write(order.report, &failure, sizeof failure);
  ::_exit(127);
}

int write_file(const char* path, const void* bytes, size_t size) {
  int file = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  if (file < 0) return -errno;
  ssize_t written = ::write(file, bytes, size);
  int status = written < 0 ? -errno : static_cast<size_t>(written) == size ? 0 : -ENOSPC;
  ::close(file);
  return status;
}

// The executable is sealed memory, which cannot be mounted; its offset belongs to everybody.
int copy_executable(int from, const char* path) {
  struct stat info{};
  if (::fstat(from, &info) < 0) return -errno;
  int file = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);
  if (file < 0) return -errno;
  off_t at = 0;
  int status = 0;
  while (at < info.st_size && status == 0) {
    ssize_t n = ::sendfile(file, from, &at, static_cast<size_t>(info.st_size - at));
    if (n <= 0) status = n < 0 ? -errno : -EIO;
  }
  ::close(file);
  return status;
}

int run_runsc(const ChildOrder& order, int channel, int said) {
  if (::dup2(channel, 0) < 0 || ::dup2(order.runsc->null, 1) < 0 || ::dup2(said, 2) < 0) return -errno;
  if (::syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0) return -errno;
  // Each of its processes would register itself, one start after another, and does without it. The barriers
  // that it offers inside are others.
  if (int status = sys::refuse_barrier_registration(); status < 0) return status;
  // Its kernel moves descriptors to 256 and above when it has threads already, and a table that grows then
  // costs the same wait. With a high one open the table is large from the start; where the limit of open
  // files is lower it grows later.
  ::fcntl(order.runsc->null, F_DUPFD, kHighDescriptor);
  static const char* const kEnvironment[] = {"PATH=/", nullptr};
  return check_call(::syscall(SYS_execveat, order.runsc->executable, "", order.runsc->arguments, kEnvironment,
                              AT_EMPTY_PATH));
}

int start_runsc(const ChildOrder& order, Guard& guard) {
  int channel[2], said[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) < 0) return -errno;
  if (::pipe2(said, O_CLOEXEC | O_NONBLOCK) < 0) return -errno;
  struct clone_args args{};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<uint64_t>(&guard.runsc);
  args.exit_signal = SIGCHLD;
  long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return -errno;
  if (pid == 0) give_up(order, Stage::exec, run_runsc(order, channel[1], said[1]));
  guard.pid = static_cast<pid_t>(pid);
  guard.channel = channel[0];
  guard.said = said[0];
  ::close(channel[1]);
  ::close(said[1]);
  return 0;
}

int64_t milliseconds_now() {
  struct timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// A little of it is kept until the sandbox runs: afterwards it is the sandbox's own output.
void read_said(Guard& guard) {
  char drop[512];
  while (true) {
    size_t room = sizeof guard.text - guard.size;
    ssize_t n =
        room > 0 ? ::read(guard.said, guard.text + guard.size, room) : ::read(guard.said, drop, sizeof drop);
    if (n <= 0) return;
    if (room > 0) guard.size += static_cast<size_t>(n);
  }
}

// 0 when execd has said that it is there.
int wait_for_execd(Guard& guard) {
  struct pollfd fds[] = {{guard.channel, POLLIN, 0}, {guard.said, POLLIN, 0}, {guard.runsc, POLLIN, 0}};
  const int64_t end = milliseconds_now() + kStartMillis;
  while (true) {
    int64_t left = end - milliseconds_now();
    int ready = left <= 0 ? 0 : ::poll(fds, 3, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return ready < 0 ? -errno : -ETIMEDOUT;
    read_said(guard);
    if (fds[1].revents && !(fds[1].revents & POLLIN)) fds[1].fd = -1;  // nobody prints any more
    char hello = 0;
    if (fds[0].revents & POLLIN) return ::read(guard.channel, &hello, 1) == 1 ? 0 : -ECONNRESET;
    if (fds[2].revents || fds[0].revents) return -ECHILD;
  }
}

[[noreturn]] void tell(const ChildOrder& order, Guard& guard, int status) {
  // What it prints last may come with its end.
  read_said(guard);
  std::string text(guard.text, guard.size);
  for (char& c : text) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  log::error("runsc did not start a sandbox", {{"runsc", text}});
  give_up(order, Stage::guest, status);
}

// From here on it may do nothing but accept and hand on.
int drop_rights() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return -errno;
  if (int status = sys::keep_capabilities({}); status < 0) return status;
  return check_call(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

// Waits while execd has not taken what came before: those who connect wait in the listener's queue then.
void hand_on(int listener, std::string_view kind, int channel) {
  int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) {
    // Out of descriptors: trying at once would spin.
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) ::usleep(100'000);
    return;
  }
  // Sockets on their way are counted for all guards together, which are one user.
  for (int left = kMostAttempts; left > 0; --left) {
    int sent = sys::send_with_descriptors(channel, kind, {&socket, 1});
    if (sent != -ETOOMANYREFS && sent != -ENOMEM) break;
    ::usleep(100'000);
  }
  ::close(socket);
}

int exit_code(int runsc) {
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(runsc), &info, WEXITED) < 0) return 1;
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

// What runsc leaves behind is this process's to bury.
void reap_orphans(pid_t runsc) {
  siginfo_t info{};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 &&
         info.si_pid != runsc) {
    ::waitpid(info.si_pid, nullptr, WNOHANG);
    info = {};
  }
}

[[noreturn]] void serve(const ChildOrder& order, Guard& guard) {
  struct pollfd fds[] = {{guard.runsc, POLLIN, 0},
                         {order.api_listener, POLLIN, 0},
                         {order.control_listener, POLLIN, 0},
                         {guard.said, POLLIN, 0},
                         {guard.channel, POLLIN, 0}};
  guard.size = sizeof guard.text;
  while (true) {
    if (::poll(fds, 5, -1) < 0 && errno != EINTR) ::_exit(1);
    if (fds[0].revents) ::_exit(exit_code(guard.runsc));
    if (fds[1].revents) hand_on(order.api_listener, "a", guard.channel);
    if (fds[2].revents) hand_on(order.control_listener, "c", guard.channel);
    if (fds[3].revents & POLLIN) {
      read_said(guard);
    } else if (fds[3].revents) {
      fds[3].fd = -1;
    }
    // Nothing is expected from inside any more; what comes all the same is thrown away, and its end is the
    // end of runsc, a moment later.
    char drop[64];
    ssize_t came = fds[4].revents ? ::recv(guard.channel, drop, sizeof drop, MSG_DONTWAIT) : 1;
    if (came == 0 || (came < 0 && errno != EAGAIN && errno != EINTR)) fds[4].fd = -1;
    reap_orphans(guard.pid);
  }
}

}  // namespace

int make_stage(const ChildOrder& order) {
  const sys::MountOption options[] = {{"mode", "0755"}, {"size", "33554432"}, {"nr_inodes", "4096"}};
  int stage = sys::mount_filesystem("tmpfs", options, 3, MOUNT_ATTR_NOSUID);
  if (stage < 0) return stage;
  int status = sys::attach_mount(stage, AT_FDCWD, "/");
  if (status == 0) status = check_call(::fchdir(stage));
  if (status == 0) status = check_call(::chroot("."));
  ::close(stage);
  for (const char* name :
       {"/proc", "/dev", "/tmp", "/state", "/bundle", kStageBoot, kStageRoot, kStageVolumes})
    if (status == 0) status = check_call(::mkdir(name, 0755));
  if (status == 0) status = check_call(::mknod("/dev/null", S_IFCHR | 0666, ::makedev(1, 3)));
  int proc =
      status < 0 ? status : sys::mount_filesystem("proc", nullptr, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (proc < 0) return proc;
  status = sys::attach_mount(proc, AT_FDCWD, "/proc");
  ::close(proc);
  if (status == 0) status = write_file("/bundle/config.json", order.runsc->config, order.runsc->config_bytes);
  if (status == 0) status = copy_executable(order.execd, "/boot/execd");
  return status;
}

void guard_runsc(const ChildOrder& order) {
  Guard guard;
  if (int status = start_runsc(order, guard); status < 0) give_up(order, Stage::guest, status);
  if (int status = wait_for_execd(guard); status < 0) tell(order, guard, status);
  if (int status = drop_rights(); status < 0) give_up(order, Stage::capabilities, status);
  // All that it needs, and nothing else that the launcher had open.
  int null = order.runsc->null;
  const int kept[] = {
      null, null, null, guard.channel, guard.said, guard.runsc, order.api_listener, order.control_listener};
  constexpr int kCount = 8;
  int moved[kCount];
  // First out of the way, then into place.
  for (int i = 0; i < kCount; ++i) moved[i] = ::fcntl(kept[i], F_DUPFD_CLOEXEC, 16);
  for (int i = 0; i < kCount; ++i) {
    if (moved[i] < 0 || ::dup3(moved[i], i, O_CLOEXEC) < 0) give_up(order, Stage::descriptors, -errno);
  }
  ChildOrder own = order;
  guard.channel = 3;
  guard.said = 4;
  guard.runsc = 5;
  own.api_listener = 6;
  own.control_listener = 7;
  for (int listener : {own.api_listener, own.control_listener}) ::fcntl(listener, F_SETFL, O_NONBLOCK);
  // With them `report`: the launcher hears that the sandbox runs.
  ::syscall(SYS_close_range, kCount, ~0U, 0);
  serve(own, guard);
}

}  // namespace osb::launcher
