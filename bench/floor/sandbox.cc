#include "sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace floorbench {
namespace {

constexpr int kNamespaces =
    CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr const char* kShell = "/usr/bin/bash";

int null_fd = -1;  // opened before /dev is dropped from our mount table

// Every sandbox mounts on the same directory, each in its own mount namespace.
std::string mount_point(const Place& place) { return place.dir + "/root"; }

void remove_tree(int parent, const char* name) {
  if (::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return;
  int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    if (::unlinkat(parent, name, 0) < 0) die("remove file");
    return;
  }
  DIR* list = ::fdopendir(fd);
  while (dirent* entry = ::readdir(list)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (entry->d_type == DT_DIR) {
      remove_tree(fd, entry->d_name);
    } else if (::unlinkat(fd, entry->d_name, 0) < 0) {
      die("remove file");
    }
  }
  ::closedir(list);
  if (::unlinkat(parent, name, AT_REMOVEDIR) < 0) die("remove directory");
}

[[noreturn]] void be_init(const Place& place, const Sandbox& sandbox, int ready) {
  // `volatile`: no sync of the whole upper file system when the overlay goes away.
  std::string options =
      "lowerdir=" + place.lower + ",upperdir=" + sandbox.upper + ",workdir=" + sandbox.work + ",volatile";
  std::string root = mount_point(place);
  if (::mount("overlay", root.c_str(), "overlay", 0, options.c_str()) < 0) die("mount overlay");
  if (::chdir(root.c_str()) < 0) die("chdir");
  if (::mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) < 0) die("mount proc");
  // With both arguments the same, the old root ends up on top of the new one: no directory for it is needed.
  if (::syscall(SYS_pivot_root, ".", ".") < 0) die("pivot_root");
  if (::umount2(".", MNT_DETACH) < 0) die("umount the old root");
  if (::write(ready, "r", 1) != 1) die("report ready");
  ::close(ready);
  for (;;) ::pause();
}

// Both stages of enter() run on borrowed memory (CLONE_VM|CLONE_VFORK): no page table is copied for a process
// that only wants to exec. The parent sleeps meanwhile, so plain variables are safe.
struct Entering {
  int pidfd;
  int out;
  const char* script;
  char* stack_top;
  pid_t pid;
  const char* failed;
};

int run_shell(void* argument) {
  auto* e = static_cast<Entering*>(argument);
  const char* argv[] = {"bash", "-c", e->script, nullptr};
  const char* env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
                       nullptr};
  if (::dup2(null_fd, 0) >= 0 && ::dup2(e->out, 1) >= 0) {
    ::execve(kShell, const_cast<char**>(argv), const_cast<char**>(env));
  }
  e->failed = "start bash";
  ::_exit(127);
}

int join_and_run(void* argument) {
  auto* e = static_cast<Entering*>(argument);
  if (::setns(e->pidfd, kNamespaces) < 0) {
    e->failed = "setns";
    ::_exit(127);
  }
  // Only children enter the process namespace; CLONE_PARENT makes this one the program's own child.
  e->pid = ::clone(run_shell, e->stack_top, CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD, e);
  if (e->pid < 0) e->failed = "clone into the sandbox";
  ::_exit(0);
}

void make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) < 0) die("mkdir");
}

}  // namespace

void die(const char* step) {
  fprintf(stderr, "floor: %s: %s\n", step, strerror(errno));
  ::_exit(1);
}

void prepare(const Place& place) {
  if (::mkdir(place.dir.c_str(), 0755) < 0 && errno != EEXIST) die("mkdir the state directory");
  std::string root = mount_point(place);
  if (::mkdir(root.c_str(), 0755) < 0 && errno != EEXIST) die("mkdir the mount point");
  null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null_fd < 0) die("open /dev/null");

  // Read before unmounting: /proc goes, too. The file systems below `dir` and `lower` must stay.
  std::vector<std::string> mounts;
  FILE* table = fopen("/proc/self/mounts", "re");
  if (table == nullptr) die("read the mount table");
  char source[4096], target[4096];
  while (fscanf(table, "%4095s %4095s %*[^\n]", source, target) == 2) mounts.emplace_back(target);
  fclose(table);

  if (::unshare(CLONE_NEWNS) < 0) die("unshare (floor needs root)");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) die("make the mounts private");
  auto holds = [](const std::string& mount, const std::string& path) {
    return mount == "/" || path == mount || path.starts_with(mount + "/");
  };
  for (auto it = mounts.rbegin(); it != mounts.rend(); ++it) {
    if (holds(*it, place.dir) || holds(*it, place.lower)) continue;
    // A submount may be gone with its parent; what stays only makes the floor slower, never wrong.
    (void)::umount2(it->c_str(), MNT_DETACH);
  }
}

Sandbox create(const Place& place) {
  static unsigned long count = 0;
  std::string name = std::to_string(::getpid()) + "." + std::to_string(++count);
  Sandbox sandbox;
  sandbox.upper = place.dir + "/u" + name;
  sandbox.work = place.dir + "/w" + name;
  make_directory(sandbox.upper);
  make_directory(sandbox.work);
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) < 0) die("pipe");

  clone_args args = {};
  args.flags = kNamespaces | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<uintptr_t>(&sandbox.pidfd);
  args.exit_signal = SIGCHLD;
  sandbox.pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
  if (sandbox.pid < 0) die("clone3 (floor needs root)");
  if (sandbox.pid == 0) be_init(place, sandbox, ready[1]);

  ::close(ready[1]);
  char byte;
  if (::read(ready[0], &byte, 1) != 1) {
    errno = ECHILD;
    die("the sandbox's first process ended early");
  }
  ::close(ready[0]);
  return sandbox;
}

void destroy(Sandbox& sandbox) {
  if (::syscall(SYS_pidfd_send_signal, sandbox.pidfd, SIGKILL, nullptr, 0) < 0) die("kill the sandbox");
  if (::waitpid(sandbox.pid, nullptr, 0) < 0) die("reap the sandbox");
  ::close(sandbox.pidfd);
  remove_tree(AT_FDCWD, sandbox.upper.c_str());
  remove_tree(AT_FDCWD, sandbox.work.c_str());
  sandbox.pid = sandbox.pidfd = -1;
}

Command enter(const Sandbox& sandbox, const char* script) {
  alignas(16) static char stacks[2][32768];
  int out[2];
  if (::pipe2(out, O_CLOEXEC) < 0) die("pipe");
  Entering entering = {sandbox.pidfd, out[1], script, stacks[1] + sizeof stacks[1], -1, nullptr};
  pid_t helper =
      ::clone(join_and_run, stacks[0] + sizeof stacks[0], CLONE_VM | CLONE_VFORK | SIGCHLD, &entering);
  if (helper < 0) die("clone");
  if (::waitpid(helper, nullptr, 0) < 0) die("reap the helper");
  if (entering.failed != nullptr) die(entering.failed);
  ::close(out[1]);
  return {entering.pid, out[0]};
}

void wait_first_byte(const Command& command) {
  char byte;
  if (::read(command.out, &byte, 1) != 1) die("read the first byte");
}

void finish(Command& command) {
  char rest[256];
  while (::read(command.out, rest, sizeof rest) > 0) {
  }
  int status = 0;
  if (::waitpid(command.pid, &status, 0) < 0) die("reap the command");
  if (status != 0) {
    errno = ECANCELED;
    die("the command failed");
  }
  ::close(command.out);
}

}  // namespace floorbench
