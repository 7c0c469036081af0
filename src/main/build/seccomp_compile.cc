// Runs during the build: writes the seccomp program of every sandbox to the file named by its argument.
//
// First come checks of arguments, of the low 32 bits that the kernel really uses (a 64-bit "not equal" would
// let ioctl(fd, TIOCSTI | 1<<32) pass), then a table of all calls. libseccomp tells the numbers.

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
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "sys/seccomp_profile.h"

namespace {

using osb::Code;
using osb::fail;
using osb::Result;

constexpr uint32_t kNewNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr uint32_t refuse(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }
constexpr uint32_t kUnknown = refuse(ENOSYS);

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
      // clone: no new namespaces. clone3 hides its flags behind a pointer, so it does not exist here
      // (default: ENOSYS).
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg0),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNewNamespaces, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refuse(EPERM)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr),
      // socket and socketpair: local, internet, and netlink for looking at one's own interfaces and sockets.
      // No other netlink: the host's device events go to every network namespace that the host owns, and so
      // to ours. Internet protocols by list: the mere attempt at another (SCTP, DCCP, L2TP, ...) can load its
      // module.
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

// What to answer for each system call, by number; those beyond are unknown.
Result<std::vector<uint32_t>> answers() {
  std::vector<uint32_t> answers;
  auto set = [&](std::span<const osb::sys::SyscallGroup> groups, uint32_t answer) -> Result<void> {
    for (const auto& group : groups) {
      for (const char* name : group.calls) {
        int number = seccomp_syscall_resolve_name(name);
        if (number < 0) continue;  // not on this architecture, or newer than libseccomp
        auto at = static_cast<size_t>(number);
        if (at >= answers.size()) answers.resize(at + 1, kUnknown);
        if (answers[at] != kUnknown && answers[at] != answer)
          return fail(Code::internal, std::string(name) + " is both allowed and forbidden");
        answers[at] = answer;
      }
    }
    return {};
  };
  TRY(set(osb::sys::allowed_syscalls(), SECCOMP_RET_ALLOW));
  TRY(set(osb::sys::forbidden_syscalls(), refuse(EPERM)));
  return answers;
}

// Consecutive numbers with the same answer.
struct Run {
  uint32_t first, answer;
};

// Finds the run of the number in the accumulator by halving.
void append_search(std::span<const Run> runs, std::vector<sock_filter>& program) {
  if (runs.size() == 1) return program.push_back(BPF_STMT(BPF_RET | BPF_K, runs[0].answer));
  size_t half = runs.size() / 2;
  size_t branch = program.size();
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, runs[half].first, 0, 0));
  append_search(runs.first(half), program);
  size_t skipped = program.size() - branch - 1;
  if (skipped > UINT8_MAX) {
    std::fprintf(stderr, "the table is too long for a jump\n");
    std::exit(1);
  }
  program[branch].jt = static_cast<uint8_t>(skipped);
  append_search(runs.subspan(half), program);
}

// The kernel translates the program anew for each sandbox, so it is made of runs of calls: libseccomp itself
// would compare with each number, which takes three times as many instructions.
void append_table(const std::vector<uint32_t>& answers, std::vector<sock_filter>& program) {
  std::vector<Run> runs;
  for (uint32_t number = 0; number < answers.size(); ++number) {
    if (runs.empty() || runs.back().answer != answers[number]) runs.push_back({number, answers[number]});
  }
  // Also those of the x32 table, which have a high bit.
  if (runs.back().answer != kUnknown) runs.push_back({static_cast<uint32_t>(answers.size()), kUnknown});
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 1, 0));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, kUnknown));
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  append_search(runs, program);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto table = answers();
  if (!table) {
    std::fprintf(stderr, "%s\n", table.error().message.c_str());
    return 1;
  }
  auto program = argument_checks();
  append_table(*table, program);
  std::string_view bytes(reinterpret_cast<const char*>(program.data()), program.size() * sizeof(sock_filter));
  auto written = osb::write_file(argv[1], bytes, O_CREAT | O_TRUNC, 0644);
  if (!written) {
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return 1;
  }
  return 0;
}
