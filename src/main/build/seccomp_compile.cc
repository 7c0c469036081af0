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
#include <linux/sockios.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

using Steps = std::vector<sock_filter>;

constexpr uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr uint32_t low(int argument) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) +
                               sizeof(uint64_t) * static_cast<size_t>(argument));
}
constexpr uint32_t high(int argument) { return low(argument) + static_cast<uint32_t>(sizeof(uint32_t)); }

// Steps for one system call: all others jump over them. The number is in the accumulator before and after.
void append_for(uint32_t call, const Steps& steps, Steps& program) {
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, static_cast<uint8_t>(steps.size() + 1)));
  program.insert(program.end(), steps.begin(), steps.end());
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber));
}

// One answer when the low half of an argument has one of these values.
Steps answer_values(int argument, std::span<const uint32_t> values, uint32_t answer) {
  Steps steps = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(argument))};
  for (size_t i = 0; i < values.size(); ++i) {
    size_t left = values.size() - 1 - i;
    steps.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, values[i], static_cast<uint8_t>(left),
                             static_cast<uint8_t>(left == 0 ? 1 : 0)));
  }
  steps.push_back(BPF_STMT(BPF_RET | BPF_K, answer));
  return steps;
}

// Requests that are for nobody in here: typing into a terminal on somebody else's behalf, and those with
// which anybody makes the kernel load a module (line disciplines, bridges, VLANs, frame relay).
constexpr uint32_t kForbiddenRequests[] = {TIOCSTI,     0x541c /* TIOCLINUX */,
                                           TIOCSETD,    SIOCGIFBR,
                                           SIOCSIFBR,   SIOCBRADDBR,
                                           SIOCBRDELBR, SIOCGIFVLAN,
                                           SIOCSIFVLAN, SIOCADDDLCI,
                                           SIOCDELDLCI};

// The limit on core files is one byte: the only value with which the kernel starts no core handler of the
// host. Programs that set it (to 0, mostly, and to good ends) go on as if they had.
constexpr uint32_t kDone = refuse(0);
constexpr uint32_t kCoreLimit[] = {RLIMIT_CORE};

// prlimit64: reading is fine. Whoever wants the former value along with setting a new one is refused: done
// without effect, it would be left with whatever was in its memory.
Steps keep_core_limit() {
  return {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(1)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RLIMIT_CORE, 0, 10),
      // A pointer is null when both of its halves are.
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(2)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, high(2)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 6, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(3)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, high(3)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kDone),
      BPF_STMT(BPF_RET | BPF_K, refuse(EPERM)),
  };
}

// clone: no new namespaces. clone3 hides its flags behind a pointer, so it does not exist here (default:
// ENOSYS).
Steps no_new_namespaces() {
  return {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(0)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNewNamespaces, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refuse(EPERM)),
  };
}

// socket and socketpair: local, internet, and netlink for looking at one's own interfaces and sockets. No
// other netlink: the host's device events go to every network namespace that the host owns, and so to ours.
// Internet types and protocols by list: the mere attempt at another (SCTP, DCCP, L2TP, ...) can load its
// module.
void append_socket_checks(Steps& program) {
  constexpr uint32_t kTypeMask = 0xf;
  const Steps steps = {
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 22),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(0)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 20, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 7, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 6, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, refuse(EAFNOSUPPORT)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(2)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_ROUTE, 14, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_SOCK_DIAG, 13, 0),
      BPF_STMT(BPF_RET | BPF_K, refuse(EPROTONOSUPPORT)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(1)),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kTypeMask),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SOCK_RAW + 1, 0, 1),  // beyond stream, datagram and raw
      BPF_STMT(BPF_RET | BPF_K, refuse(ESOCKTNOSUPPORT)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low(2)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_IP, 6, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMP, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMPV6, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_MPTCP, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, refuse(EPROTONOSUPPORT)),
  };
  program.insert(program.end(), steps.begin(), steps.end());
}

Steps argument_checks() {
  Steps program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber)};
  append_for(SYS_ioctl, answer_values(1, kForbiddenRequests, refuse(EPERM)), program);
  append_for(SYS_clone, no_new_namespaces(), program);
  append_for(SYS_setrlimit, answer_values(0, kCoreLimit, kDone), program);
  append_for(SYS_prlimit64, keep_core_limit(), program);
  append_socket_checks(program);  // last: leaves something else than the number behind
  return program;
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
