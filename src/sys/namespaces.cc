#include "sys/namespaces.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/cleanup.h"

namespace osb::sys {
namespace {

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
// without these two it could neither bind port 80 nor send a ping.
Result<void> open_to_unprivileged() {
  TRY(write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"));
  TRY(write_file("/proc/sys/net/ipv4/ping_group_range", "0 2147483647"));
  return {};
}

void return_home(int home) {
  // Going on in a foreign network namespace would put the host's sockets into a sandbox.
  if (::setns(home, CLONE_NEWNET) < 0) std::abort();
}

}  // namespace

Result<Fd> create_user_namespace(uint32_t base, uint32_t count) {
  int pidfd = -1;
  struct clone_args args{};
  args.flags = CLONE_NEWUSER | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  args.exit_signal = 0;  // reaped below, and nobody else's business
  pid_t parent = ::getpid();
  long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) {
    // It must not outlive a killed parent, and hold none of its descriptors (a listening port, a lock)
    // meanwhile.
    ::syscall(SYS_close_range, 0, ~0U, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (::getppid() == parent) ::pause();
    ::_exit(0);
  }
  if (pid < 0) return fail_errno("clone for a user namespace");
  Fd child(pidfd);
  Cleanup end;
  end.push([&] {
    ::kill(static_cast<pid_t>(pid), SIGKILL);
    ::waitpid(static_cast<pid_t>(pid), nullptr, __WALL);
  });
  std::string proc = "/proc/" + std::to_string(pid);
  std::string map = "0 " + std::to_string(base) + " " + std::to_string(count);
  TRY(write_file(proc + "/uid_map", map));
  TRY(write_file(proc + "/gid_map", map));
  return open_at(AT_FDCWD, proc + "/ns/user", O_RDONLY);
}

Result<Fd> own_network_namespace() { return open_at(AT_FDCWD, "/proc/self/ns/net", O_RDONLY); }

Result<Fd> create_network_namespace(int home) {
  if (::unshare(CLONE_NEWNET) < 0) return fail_errno("unshare the network namespace");
  Cleanup back;
  back.push([&] { return_home(home); });
  TRY(bring_up_loopback());
  TRY(open_to_unprivileged());
  return own_network_namespace();
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

Result<void> sockets_in_network(int pidfd, int home, Fd* sockets, int count) {
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
