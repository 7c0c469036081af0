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
#include "sys/bpf.h"
#include "sys/seccomp_profile.h"

namespace {

using osb::Code;
using osb::fail;
using osb::Result;

constexpr uint32_t kNewNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr uint32_t refuse(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }
constexpr uint32_t kUnknown = refuse(ENOSYS);

using osb::sys::Bpf;
using osb::sys::high_half;
using osb::sys::kCallNumber;
using osb::sys::low_half;

// Checks for one system call: all others jump over them. `checks` goes to its label when there is nothing to
// say against the call. The number is in the accumulator before and after.
template <class Checks>
void append_for(uint32_t call, Bpf& bpf, Checks checks) {
  auto fine = bpf.label(), others = bpf.label();
  bpf.if_not_equal(call, others);
  checks(bpf, fine);
  bpf.place(fine);
  bpf.load(kCallNumber);
  bpf.place(others);
}

// One answer when the low half of an argument has one of these values.
auto answer_values(int argument, std::span<const uint32_t> values, uint32_t answer) {
  return [=](Bpf& bpf, Bpf::Label fine) {
    auto found = bpf.label();
    bpf.load(low_half(argument));
    for (uint32_t value : values.first(values.size() - 1)) bpf.if_equal(value, found);
    bpf.if_not_equal(values.back(), fine);
    bpf.place(found);
    bpf.answer(answer);
  };
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
void keep_core_limit(Bpf& bpf, Bpf::Label fine) {
  auto sets = bpf.label(), asks_too = bpf.label();
  bpf.load(low_half(1));
  bpf.if_not_equal(RLIMIT_CORE, fine);
  // A pointer is null when both of its halves are.
  bpf.load(low_half(2));
  bpf.if_not_equal(0, sets);
  bpf.load(high_half(2));
  bpf.if_equal(0, fine);
  bpf.place(sets);
  bpf.load(low_half(3));
  bpf.if_not_equal(0, asks_too);
  bpf.load(high_half(3));
  bpf.if_not_equal(0, asks_too);
  bpf.answer(kDone);
  bpf.place(asks_too);
  bpf.answer(refuse(EPERM));
}

// clone: no new namespaces. clone3 hides its flags behind a pointer, so it does not exist here (default:
// ENOSYS).
void no_new_namespaces(Bpf& bpf, Bpf::Label fine) {
  bpf.load(low_half(0));
  bpf.if_no_bit(kNewNamespaces, fine);
  bpf.answer(refuse(EPERM));
}

// socket and socketpair: local, internet, and netlink for looking at one's own interfaces and sockets. No
// other netlink: the host's device events go to every network namespace that the host owns, and so to ours.
// Internet types and protocols by list: the mere attempt at another (SCTP, DCCP, L2TP, ...) can load its
// module.
void append_socket_checks(Bpf& bpf) {
  constexpr uint32_t kTypeMask = 0xf;
  constexpr uint32_t kProtocols[] = {IPPROTO_IP,   IPPROTO_TCP,    IPPROTO_UDP,
                                     IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_MPTCP};
  auto sockets = bpf.label(), netlink = bpf.label(), internet = bpf.label(), protocols = bpf.label(),
       fine = bpf.label();
  bpf.if_equal(SYS_socket, sockets);
  bpf.if_not_equal(SYS_socketpair, fine);
  bpf.place(sockets);
  bpf.load(low_half(0));
  bpf.if_equal(AF_UNIX, fine);
  bpf.if_equal(AF_INET, internet);
  bpf.if_equal(AF_INET6, internet);
  bpf.if_equal(AF_NETLINK, netlink);
  bpf.answer(refuse(EAFNOSUPPORT));
  bpf.place(netlink);
  bpf.load(low_half(2));
  for (uint32_t protocol : {NETLINK_ROUTE, NETLINK_SOCK_DIAG}) bpf.if_equal(protocol, fine);
  bpf.answer(refuse(EPROTONOSUPPORT));
  bpf.place(internet);
  bpf.load(low_half(1));
  bpf.mask(kTypeMask);
  bpf.if_less(SOCK_RAW + 1, protocols);  // stream, datagram and raw
  bpf.answer(refuse(ESOCKTNOSUPPORT));
  bpf.place(protocols);
  bpf.load(low_half(2));
  for (uint32_t protocol : kProtocols) bpf.if_equal(protocol, fine);
  bpf.answer(refuse(EPROTONOSUPPORT));
  bpf.place(fine);
}

void append_argument_checks(Bpf& bpf) {
  bpf.load(kCallNumber);
  append_for(SYS_ioctl, bpf, answer_values(1, kForbiddenRequests, refuse(EPERM)));
  append_for(SYS_clone, bpf, no_new_namespaces);
  append_for(SYS_setrlimit, bpf, answer_values(0, kCoreLimit, kDone));
  append_for(SYS_prlimit64, bpf, keep_core_limit);
  append_socket_checks(bpf);  // last: leaves something else than the number behind
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
void append_search(std::span<const Run> runs, Bpf& bpf) {
  if (runs.size() == 1) return bpf.answer(runs[0].answer);
  size_t half = runs.size() / 2;
  auto upper = bpf.label();
  bpf.if_at_least(runs[half].first, upper);
  append_search(runs.first(half), bpf);
  bpf.place(upper);
  append_search(runs.subspan(half), bpf);
}

// The kernel translates the program anew for each sandbox, so it is made of runs of calls: libseccomp itself
// would compare with each number, which takes three times as many instructions.
void append_table(const std::vector<uint32_t>& answers, Bpf& bpf) {
  std::vector<Run> runs;
  for (uint32_t number = 0; number < answers.size(); ++number) {
    if (runs.empty() || runs.back().answer != answers[number]) runs.push_back({number, answers[number]});
  }
  // Also those of the x32 table, which have a high bit.
  if (runs.back().answer != kUnknown) runs.push_back({static_cast<uint32_t>(answers.size()), kUnknown});
  auto ours = bpf.label();
  bpf.load(offsetof(seccomp_data, arch));
  bpf.if_equal(seccomp_arch_native(), ours);
  bpf.answer(kUnknown);
  bpf.place(ours);
  bpf.load(kCallNumber);
  append_search(runs, bpf);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto table = answers();
  if (!table) {
    std::fprintf(stderr, "%s\n", table.error().message.c_str());
    return 1;
  }
  Bpf bpf;
  append_argument_checks(bpf);
  append_table(*table, bpf);
  auto program = bpf.assemble();
  if (!program) {
    std::fprintf(stderr, "%s\n", program.error().message.c_str());
    return 1;
  }
  std::string_view bytes(reinterpret_cast<const char*>(program->data()),
                         program->size() * sizeof(sock_filter));
  auto written = osb::write_file(argv[1], bytes, O_CREAT | O_TRUNC, 0644);
  if (!written) {
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return 1;
  }
  return 0;
}
