// The programs that sandboxes get, executed here for every number instead of by the kernel.

#include <asm/unistd.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include <cstring>
#include <map>
#include <span>

#include "sys/file_privileges.h"
#include "sys/seccomp_profile.h"

extern "C" const unsigned char osb_seccomp_program[];
extern "C" const unsigned char osb_seccomp_program_end[];

namespace osb::launcher {
namespace {

constexpr uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS, kForbidden = SECCOMP_RET_ERRNO | EPERM;

struct Arguments {
  uint64_t first = 0, second = 0, third = 0, fourth = 0;
};

uint32_t execute(std::span<const unsigned char> program, const seccomp_data& data) {
  uint32_t accumulator = 0;
  for (size_t at = 0; at < program.size() / sizeof(sock_filter); ++at) {
    sock_filter step;
    std::memcpy(&step, program.data() + at * sizeof step, sizeof step);
    auto jump = [&](bool taken) { at += taken ? step.jt : step.jf; };
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + step.k, sizeof accumulator);
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        jump(accumulator == step.k);
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        jump(accumulator >= step.k);
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        jump(accumulator & step.k);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        accumulator &= step.k;
        break;
      case BPF_RET | BPF_K:
        return step.k;
      default:
        ADD_FAILURE() << "unknown instruction " << step.code;
        return 0;
    }
  }
  ADD_FAILURE() << "the program has no end";
  return 0;
}

seccomp_data call(uint32_t number, Arguments arguments, uint32_t arch = seccomp_arch_native()) {
  const auto& [first, second, third, fourth] = arguments;
  return {static_cast<int>(number), arch, 0, {first, second, third, fourth}};
}

uint32_t answer(uint32_t number, Arguments arguments = {}, uint32_t arch = seccomp_arch_native()) {
  return execute({osb_seccomp_program, osb_seccomp_program_end}, call(number, arguments, arch));
}

TEST(SeccompProgram, AnswersForEveryNumberAsTheProfileSays) {
  std::map<uint32_t, uint32_t> named;
  auto add = [&](std::span<const sys::SyscallGroup> groups, uint32_t expected) {
    for (const auto& group : groups) {
      for (const char* name : group.calls) {
        if (int number = seccomp_syscall_resolve_name(name); number >= 0)
          named[static_cast<uint32_t>(number)] = expected;
      }
    }
  };
  add(sys::allowed_syscalls(), SECCOMP_RET_ALLOW);
  add(sys::forbidden_syscalls(), kForbidden);
  ASSERT_GT(named.size(), 300u);
  for (uint32_t number = 0; number < 2000; ++number) {
    auto found = named.find(number);
    EXPECT_EQ(answer(number, {AF_UNIX}), found == named.end() ? kUnknown : found->second) << number;
  }
  EXPECT_EQ(answer(0x7fffffff), kUnknown);
  EXPECT_EQ(answer(0xffffffff), kUnknown);
}

TEST(SeccompProgram, OtherTablesOfCallsAreClosed) {
  for (uint32_t number = 0; number < 600; ++number) {
    EXPECT_NE(answer(number, {AF_UNIX}, AUDIT_ARCH_I386), SECCOMP_RET_ALLOW) << number;
    EXPECT_EQ(answer(0x40000000 | number, {AF_UNIX}), kUnknown) << number;
  }
}

TEST(SeccompProgram, LooksAtWhatTheKernelUsesOfAnArgument) {
  EXPECT_EQ(answer(__NR_ioctl, {0, TCGETS}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(__NR_ioctl, {0, SIOCGIFCONF}), SECCOMP_RET_ALLOW);
  for (uint64_t request : {TIOCSTI, 0x541c, TIOCSETD, SIOCGIFBR, SIOCSIFBR, SIOCBRADDBR, SIOCBRDELBR,
                           SIOCGIFVLAN, SIOCSIFVLAN, SIOCADDDLCI, SIOCDELDLCI}) {
    EXPECT_EQ(answer(__NR_ioctl, {0, request}), kForbidden) << request;
    EXPECT_EQ(answer(__NR_ioctl, {0, uint64_t{1} << 32 | request}), kForbidden) << request;
    EXPECT_EQ(answer(__NR_ioctl, {request, 0}), SECCOMP_RET_ALLOW) << request;
  }
  EXPECT_EQ(answer(__NR_clone, {CLONE_NEWUSER}), kForbidden);
  EXPECT_EQ(answer(__NR_clone, {CLONE_VM}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(__NR_clone3), kUnknown);
}

TEST(SeccompProgram, SocketsByFamilyTypeAndProtocol) {
  EXPECT_EQ(answer(__NR_socket, {AF_PACKET}), SECCOMP_RET_ERRNO | EAFNOSUPPORT);
  EXPECT_EQ(answer(__NR_socket, {AF_UNIX, SOCK_SEQPACKET}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(__NR_socketpair, {AF_UNIX, SOCK_STREAM}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(__NR_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(__NR_socket, {AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(__NR_socket, {AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT}),
            SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
  for (uint64_t family : {AF_INET, AF_INET6}) {
    for (uint64_t type : {SOCK_STREAM | SOCK_CLOEXEC, SOCK_DGRAM | SOCK_NONBLOCK, SOCK_RAW + 0}) {
      for (uint64_t protocol : {0, 1, 6, 17, 58, 262})
        EXPECT_EQ(answer(__NR_socket, {family, type, protocol}), SECCOMP_RET_ALLOW) << type << protocol;
      for (uint64_t protocol : {33, 115, 132, 256})
        EXPECT_EQ(answer(__NR_socket, {family, type, protocol}), SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
    }
    // The kernel takes protocol 0 for "whatever this type has", and has DCCP for one of these.
    for (uint64_t type : {4, 5, 6, 10, 6 | SOCK_CLOEXEC})  // RDM, SEQPACKET, DCCP, PACKET
      EXPECT_EQ(answer(__NR_socket, {family, type}), SECCOMP_RET_ERRNO | ESOCKTNOSUPPORT) << type;
  }
}

TEST(SeccompProgram, TheLimitOnCoreFilesStays) {
  constexpr uint32_t kDone = SECCOMP_RET_ERRNO;
  constexpr uint64_t kHigh = uint64_t{1} << 32;  // null in its low half
  for (uint64_t core : {uint64_t{RLIMIT_CORE}, kHigh | RLIMIT_CORE, ~uint64_t{0} << 32 | RLIMIT_CORE}) {
    EXPECT_EQ(answer(__NR_setrlimit, {core, 4096}), kDone);
    EXPECT_EQ(answer(__NR_setrlimit, {core, 0}), kDone);
    EXPECT_EQ(answer(__NR_prlimit64, {0, core, 4096}), kDone);
    EXPECT_EQ(answer(__NR_prlimit64, {7, core, kHigh}), kDone);
    EXPECT_EQ(answer(__NR_prlimit64, {0, core, 4096, 4096}), kForbidden);
    EXPECT_EQ(answer(__NR_prlimit64, {0, core, 4096, kHigh}), kForbidden);
    EXPECT_EQ(answer(__NR_prlimit64, {0, core, 0, 4096}), SECCOMP_RET_ALLOW);
    EXPECT_EQ(answer(__NR_getrlimit, {core, 4096}), SECCOMP_RET_ALLOW);
  }
  for (uint64_t other : {uint64_t{RLIMIT_NOFILE}, uint64_t{RLIMIT_STACK}, kHigh | RLIMIT_NOFILE}) {
    EXPECT_EQ(answer(__NR_setrlimit, {other, 4096}), SECCOMP_RET_ALLOW);
    EXPECT_EQ(answer(__NR_prlimit64, {0, other, 4096, 4096}), SECCOMP_RET_ALLOW);
  }
}

uint32_t of_modes(uint32_t number, Arguments arguments) {
  auto program = sys::refuse_privileged_modes();
  if (!program) return 0;
  auto bytes = std::as_bytes(std::span(*program));
  return execute({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()},
                 call(number, arguments));
}

TEST(SeccompProgram, NoFileGetsAPrivilegedMode) {
  constexpr uint64_t kHigh = uint64_t{1} << 32;
  for (uint64_t mode : {04755, 02755, 06000, 04000, 02000, 07777}) {
    for (uint64_t value : {mode, kHigh | mode, mode | S_IFREG}) {
      for (uint32_t second : {__NR_chmod, __NR_fchmod, __NR_creat, __NR_mkdir, __NR_mknod})
        EXPECT_EQ(of_modes(second, {0, value}), kForbidden) << second;
      for (uint32_t third : {__NR_fchmodat, 452 /* fchmodat2 */, __NR_mkdirat, __NR_mknodat})
        EXPECT_EQ(of_modes(third, {0, 0, value}), kForbidden) << third;
      for (uint64_t flags : {O_CREAT, O_TMPFILE | O_RDWR, O_CREAT | O_EXCL | O_WRONLY}) {
        EXPECT_EQ(of_modes(__NR_open, {0, flags, value}), kForbidden) << flags;
        EXPECT_EQ(of_modes(__NR_openat, {0, 0, kHigh | flags, value}), kForbidden) << flags;
      }
      // What makes nothing has no mode, and whatever else was in its place.
      EXPECT_EQ(of_modes(__NR_open, {0, O_RDONLY | O_DIRECTORY, value}), SECCOMP_RET_ALLOW);
      EXPECT_EQ(of_modes(__NR_openat, {0, 0, O_RDWR | O_TRUNC, value}), SECCOMP_RET_ALLOW);
      EXPECT_EQ(of_modes(__NR_write, {value, value, value, value}), SECCOMP_RET_ALLOW);
    }
  }
  for (uint64_t mode : {0, 0755, 01777, 0777 | S_IFREG}) {
    EXPECT_EQ(of_modes(__NR_chmod, {06000, mode}), SECCOMP_RET_ALLOW);
    EXPECT_EQ(of_modes(__NR_mkdirat, {06000, 06000, mode}), SECCOMP_RET_ALLOW);
    EXPECT_EQ(of_modes(__NR_openat, {06000, 06000, O_CREAT, mode}), SECCOMP_RET_ALLOW);
  }
  EXPECT_EQ(of_modes(__NR_openat2, {}), kUnknown);
}

// It stands beside a program that leaves no other way to a file's mode.
TEST(SeccompProgram, NoOtherCallTakesAMode) {
  for (uint32_t number : {__NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register,
                          __NR_open_by_handle_at, __NR_unshare, 463 /* setxattrat */, 468 /* file_getattr */})
    EXPECT_NE(answer(number), SECCOMP_RET_ALLOW) << number;
}

// The kernel translates it anew for each sandbox.
TEST(SeccompProgram, IsShort) {
  EXPECT_LE(static_cast<size_t>(osb_seccomp_program_end - osb_seccomp_program) / sizeof(sock_filter), 200u);
}

}  // namespace
}  // namespace osb::launcher
