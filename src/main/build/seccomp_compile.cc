// Runs during the build: writes the seccomp program of every sandbox to the file named by its argument.
//
// Arguments are checked by hand-written instructions in front of libseccomp's table: only they can look at the low 32 bits
// that the kernel really uses. (A 64-bit "not equal" would let ioctl(fd, TIOCSTI | 1<<32) pass.)

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "sys/seccomp_profile.h"

namespace {

using osb::Code;
using osb::fail;
using osb::Result;

constexpr uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr uint32_t refuse(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

std::vector<sock_filter> argument_checks() {
  const uint32_t nr = offsetof(seccomp_data, nr);
  const uint32_t arg0 = offsetof(seccomp_data, args[0]), arg1 = offsetof(seccomp_data, args[1]),
                 arg2 = offsetof(seccomp_data, args[2]);

  return {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr),
      // ioctl: never type into a terminal on somebody else's behalf.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg1),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x541c /* TIOCLINUX */, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refuse(EPERM)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr),
      // clone: no new namespaces. clone3 hides its flags behind a pointer, so it does not exist here (default: ENOSYS).
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg0),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNewNamespaces, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refuse(EPERM)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr),
      // socket and socketpair: local, internet, and netlink for looking at one's own interfaces and sockets. No other
      // netlink: the host's device events go to every network namespace that the host owns, and so to ours.
      // Internet protocols by list: the mere attempt at another (SCTP, DCCP, L2TP, ...) can load its module.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 18),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 16, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 7, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 6, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, refuse(EAFNOSUPPORT)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg2),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_ROUTE, 10, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_SOCK_DIAG, 9, 0),
      BPF_STMT(BPF_RET | BPF_K, refuse(EPROTONOSUPPORT)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg2),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_IP, 6, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMP, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMPV6, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_MPTCP, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, refuse(EPROTONOSUPPORT)),
  };
}

Result<std::string> syscall_table() {
  scmp_filter_ctx context = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
  if (!context) return fail(Code::internal, "seccomp_init");
  // A balanced tree instead of a list: a hundred instructions less for an average call.
  seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
  auto add = [&](std::span<const osb::sys::SyscallGroup> groups, uint32_t action) -> Result<void> {
    for (const auto& group : groups) {
      for (const char* name : group.calls) {
        int number = seccomp_syscall_resolve_name(name);
        if (number < 0) continue;  // not on this architecture, or newer than libseccomp
        int error = seccomp_rule_add(context, action, number, 0);
        if (error < 0 && error != -EEXIST) return osb::fail_errno(std::string("seccomp rule for ") + name, -error);
      }
    }
    return {};
  };
  TRY(add(osb::sys::allowed_syscalls(), SCMP_ACT_ALLOW));
  TRY(add(osb::sys::forbidden_syscalls(), SCMP_ACT_ERRNO(EPERM)));
  osb::Fd memory(::memfd_create("bpf", MFD_CLOEXEC));
  int error = seccomp_export_bpf(context, memory.get());
  seccomp_release(context);
  if (error < 0) return osb::fail_errno("seccomp_export_bpf", -error);
  ::lseek(memory.get(), 0, SEEK_SET);
  return osb::read_all(memory.get());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto table = syscall_table();
  if (!table) {
    std::fprintf(stderr, "%s\n", table.error().message.c_str());
    return 1;
  }
  auto checks = argument_checks();
  std::string program(reinterpret_cast<const char*>(checks.data()), checks.size() * sizeof(sock_filter));
  program += *table;
  auto written = osb::write_file(argv[1], program, O_CREAT | O_TRUNC, 0644);
  if (!written) {
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return 1;
  }
  return 0;
}
