#include "sys/namespaces.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/cleanup.h"
#include "sys/caps.h"
#include "sys/descriptors.h"
#include "sys/mount.h"
#include "sys/process.h"
#include "sys/user_namespace.h"

namespace osb::sys {
namespace {

constexpr uint32_t kLastGroup = 0x7fff'ffff;

Result<void> bring_up_loopback() {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail_errno("socket for lo");
  struct ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) < 0) return fail_errno("bring lo up");
  return {};
}

// The network namespace belongs to the host's user namespace, so sandbox root has no capability over it:
// without the first two it could neither bind port 80 nor send a ping.
Result<void> configure_network(uint32_t last_group) {
  // Through a procfs of its own, where that is allowed: in a shared one each namespace leaves names like all
  // others, and whoever looks for one of them passes every namespace of the machine.
  Fd proc(mount_filesystem("proc", nullptr, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
  if (!proc.valid()) proc = TRY(open_at(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY));
  auto set = [&](const char* name, const std::string& value) -> Result<void> {
    Fd file = TRY(open_at(proc.get(), std::string("sys/net/") + name, O_WRONLY));
    return write_all(file.get(), value);
  };
  TRY(set("ipv4/ip_unprivileged_port_start", "0"));
  TRY(set("ipv4/ping_group_range", "0 " + std::to_string(last_group)));
  // The newest versions of both protocols tell of a joined or left group up to seconds later, when the
  // network may be somebody else's. Older ones do it at once, and forget a group that was left, so that the
  // counters show all there will be (network_counters).
  TRY(set("ipv4/conf/lo/force_igmp_version", "2"));
  auto set_mld = set("ipv6/conf/lo/force_mld_version", "1");
  if (!set_mld && set_mld.error().code == Code::not_found) return {};  // no IPv6, no groups
  return set_mld;
}

void return_home(int home) {
  // The way back costs the kernel some memory, which may be there in a moment.
  for (int tries = 0; tries < 20; ++tries) {
    if (::setns(home, CLONE_NEWNET) == 0) return;
    ::usleep(5000);
  }
  // Going on in a foreign network namespace would put the host's sockets into a sandbox.
  std::abort();
}

// A number and, when it is 0, descriptors.
void send_made(int socket, int32_t error, const Fd* made, int count) {
  int descriptors[kMostDescriptors];
  size_t sent = error == 0 && count <= static_cast<int>(kMostDescriptors) ? static_cast<size_t>(count) : 0;
  for (size_t i = 0; i < sent; ++i) descriptors[i] = made[i].get();
  (void)send_with_descriptors(socket, {reinterpret_cast<const char*>(&error), sizeof error},
                              {descriptors, sent});
}

// 0 when all have arrived, else an errno.
int32_t receive_made(int socket, Fd* made, int count) {
  int32_t error = EIO;
  std::vector<Fd> arrived;
  auto size = receive_with_descriptors(socket, {reinterpret_cast<char*>(&error), sizeof error}, arrived);
  if (!size) return size.error().sys_errno ? size.error().sys_errno : EIO;
  if (*size != sizeof error) return EIO;
  if (error != 0) return error;
  if (arrived.size() != static_cast<size_t>(count)) return EIO;
  std::move(arrived.begin(), arrived.end(), made);
  return 0;
}

// The kernel charges what the users of a namespace hold (inotify instances, queued signals, message queues)
// also to whoever made it: were that root, one sandbox could take root's share and so everybody's. Only the
// effective id counts for that. The real one stays, or the caller's limit on processes would hold inside.
int32_t make_as(uint32_t owner) {
  // Not by the C library, which would look for the threads of the process that this is a copy of.
  if (::syscall(SYS_setresgid, -1, owner, -1) < 0 || ::syscall(SYS_setresuid, -1, owner, -1) < 0)
    return errno;
  // Rights held until here stay: some hosts let nobody without them make a user namespace.
  if (int status = raise_permitted_capabilities(); status < 0) return -status;
  return ::unshare(CLONE_NEWUSER) < 0 ? errno : 0;
}

// The process that holds a new user namespace until it is mapped and opened.
[[noreturn]] void hold_user_namespace(std::optional<uint32_t> owner, Fd done, pid_t parent) {
  // It must not outlive a killed parent, and hold none of its descriptors (a listening port, a lock)
  // meanwhile.
  auto kept = static_cast<unsigned>(done.get());
  if (kept > 0) ::syscall(SYS_close_range, 0, kept - 1, 0);
  ::syscall(SYS_close_range, kept + 1, ~0U, 0);
  int32_t error = 0;
  if (owner)
    error = make_as(*owner);
  else if (::unshare(CLONE_NEWUSER) < 0)
    error = errno;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // after the change of id, which clears it
  (void)!::write(done.get(), &error, sizeof error);
  done.reset();
  // A parent that was gone before the death signal was set is seen here.
  while (::getppid() == parent) ::pause();
  ::_exit(0);
}

Result<Fd> create_user_namespace(const std::string& users, const std::string& groups,
                                 std::optional<uint32_t> owner) {
  int pipe[2], pidfd = -1;
  if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd made(pipe[0]), done(pipe[1]);
  struct clone_args args{};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  args.exit_signal = 0;  // reaped below, and nobody else's business
  pid_t parent = ::getpid();
  long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) hold_user_namespace(owner, std::move(done), parent);
  if (pid < 0) return fail_errno("clone for a user namespace");
  done.reset();
  Fd child(pidfd);
  Cleanup end;
  end.push([&] {
    // Either will do; nothing here may wait for a child that was not told to end.
    if (::kill(static_cast<pid_t>(pid), SIGKILL) < 0) (void)send_signal(child.get(), SIGKILL);
    ::waitpid(static_cast<pid_t>(pid), nullptr, __WALL);
  });
  int32_t error = EIO;
  ssize_t n = 0;
  while ((n = ::read(made.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (n != sizeof error) error = EIO;
  if (error != 0) return fail_errno("make a user namespace", error);
  std::string proc = "/proc/" + std::to_string(pid);
  TRY(write_file(proc + "/uid_map", users));
  TRY(write_file(proc + "/gid_map", groups));
  return open_at(AT_FDCWD, proc + "/ns/user", O_RDONLY);
}

}  // namespace

Result<Fd> create_user_namespace(uint32_t base, uint32_t count) {
  std::string map = "0 " + std::to_string(base) + " " + std::to_string(count);
  return create_user_namespace(map, map, base);
}

Result<Fd> create_user_namespace(const std::string& map) {
  return create_user_namespace(map, map, std::nullopt);
}

Result<Fd> create_id_map(const std::string& users, const std::string& groups) {
  return create_user_namespace(users, groups, std::nullopt);
}

Result<Fd> own_network_namespace() { return open_at(AT_FDCWD, "/proc/self/ns/net", O_RDONLY); }

// What `make` does in a child of ours, and the descriptors it sends back.
template <class Make>
Result<void> made_by_child(const char* what, Fd* made, int count, Make make) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return fail_errno("socketpair");
  Fd ours(pair[0]), theirs(pair[1]);
  struct clone_args args{};  // no exit signal: reaped here, and nobody else's business
  long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return fail_errno("clone");
  if (pid == 0) {
    ours.reset();
    int32_t error = make(made);
    send_made(theirs.get(), error, made, count);
    ::_exit(0);
  }
  theirs.reset();
  int32_t error = receive_made(ours.get(), made, count);
  ::waitpid(static_cast<pid_t>(pid), nullptr, __WALL);
  if (error != 0) return fail_errno(what, error);
  return {};
}

Result<Fd> create_network_namespace(int home, LoopbackRoute route) {
  if (home < 0) {
    Fd made;
    TRY(made_by_child("make a network namespace", &made, 1, [route](Fd* into) -> int32_t {
      if (::unshare(CLONE_NEWNET) < 0) return errno;
      if (auto up = bring_up_loopback(); !up) return up.error().sys_errno;
      if (auto open = configure_network(mapped_ids() - 1); !open) return open.error().sys_errno;
      auto routed = route == LoopbackRoute::everything ? route_through_loopback() : Result<void>();
      if (!routed) return routed.error().sys_errno;
      auto own = own_network_namespace();
      if (!own) return own.error().sys_errno;
      *into = std::move(*own);
      return 0;
    }));
    return made;
  }
  if (::unshare(CLONE_NEWNET) < 0) return fail_errno("unshare the network namespace");
  Cleanup back;
  back.push([&] { return_home(home); });
  TRY(bring_up_loopback());
  TRY(configure_network(kLastGroup));
  if (route == LoopbackRoute::everything) TRY(route_through_loopback());
  return own_network_namespace();
}

Result<Fd> sysfs_of_network(int network, int home) {
  if (::setns(network, CLONE_NEWNET) < 0) return fail_errno("enter a network namespace");
  Cleanup back;
  back.push([&] { return_home(home); });
  int mount = mount_filesystem("sysfs", nullptr, 0,
                               MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  if (mount < 0) return fail_errno("mount sysfs", -mount);
  return Fd(mount);
}

Result<Fd> create_empty_mount_namespace(const std::string& place) {
  auto make = [&](Fd* into) -> int32_t {
    if (::unshare(CLONE_NEWNS) < 0) return errno;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return errno;
    auto own = open_at(AT_FDCWD, "/proc/self/ns/mnt", O_RDONLY);
    if (!own) return own.error().sys_errno;
    const MountOption options[] = {{"mode", "0555"}, {"size", "4096"}, {"nr_inodes", "2"}};
    int root = mount_filesystem("tmpfs", options, 3,
                                MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (root < 0) return -root;
    if (int status = attach_mount(root, AT_FDCWD, place.c_str()); status < 0) return -status;
    // Old and new root at one place: the old one then lies on top, and goes.
    if (::fchdir(root) < 0 || ::syscall(SYS_pivot_root, ".", ".") < 0) return errno;
    if (::umount2(".", MNT_DETACH) < 0) return errno;
    *into = std::move(*own);
    return 0;
  };
  Fd made;
  TRY(made_by_child("make an empty mount namespace", &made, 1, make));
  return made;
}

Result<std::string> network_counters(int network, int home) {
  if (::setns(network, CLONE_NEWNET) < 0) return fail_errno("enter a network namespace");
  Cleanup back;
  back.push([&] { return_home(home); });
  std::string counters;
  // Packets, protocols (also attempts that found no route), and labels that outlive their socket.
  for (const char* name : {"dev", "snmp", "snmp6", "netstat", "ip6_flowlabel"}) {
    auto text = read_file(std::string("/proc/thread-self/net/") + name);
    if (!text && text.error().code == Code::not_found) continue;  // a kernel without that protocol
    counters += TRY(std::move(text));
  }
  return counters;
}

Result<Outlet> open_outlet(int network, int home, OutletFor what) {
  if (home >= 0) {
    if (::setns(network, CLONE_NEWNET) < 0) return fail_errno("enter the sandbox's network namespace");
    Cleanup back;
    back.push([&] { return_home(home); });
    return open_outlet_here(what);
  }
  // How many come is not known before.
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return fail_errno("socketpair");
  Fd ours(pair[0]), theirs(pair[1]);
  struct clone_args args{};
  long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return fail_errno("clone");
  if (pid == 0) {
    ours.reset();
    Outlet made;
    int32_t error = ::setns(network, CLONE_NEWNET) < 0 ? errno : 0;
    if (error == 0) {
      auto opened = open_outlet_here(what);
      if (opened)
        made = std::move(*opened);
      else
        error = opened.error().sys_errno ? opened.error().sys_errno : EIO;
    }
    send_made(theirs.get(), error, made.data(), static_cast<int>(made.size()));
    ::_exit(0);
  }
  theirs.reset();
  int32_t error = EIO;
  Outlet outlet;
  auto size = receive_with_descriptors(ours.get(), {reinterpret_cast<char*>(&error), sizeof error}, outlet);
  ::waitpid(static_cast<pid_t>(pid), nullptr, __WALL);
  if (!size) return std::unexpected(std::move(size.error()));
  if (*size != sizeof error || (error == 0 && outlet.empty())) error = EIO;
  if (error != 0) return fail_errno("open an outlet in a network namespace", error);
  return outlet;
}

Result<void> sockets_in_network(int pidfd, int home, Fd* sockets, int count) {
  if (home < 0) {
    return made_by_child("sockets in a network namespace", sockets, count, [&](Fd* into) -> int32_t {
      if (::setns(pidfd, CLONE_NEWNET) < 0) return errno;
      for (int i = 0; i < count; ++i) {
        into[i] = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (!into[i].valid()) return errno;
      }
      return 0;
    });
  }
  if (::setns(pidfd, CLONE_NEWNET) < 0) return fail_errno("enter the sandbox's network namespace");
  Cleanup back;
  back.push([&] { return_home(home); });
  for (int i = 0; i < count; ++i) {
    sockets[i] = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!sockets[i].valid()) return fail_errno("socket in the sandbox's network namespace");
  }
  return {};
}

}  // namespace osb::sys
