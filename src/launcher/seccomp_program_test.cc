// The program that every sandbox gets, executed here for every number instead of by the kernel.

#include <asm/unistd.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

#include <cstring>
#include <map>

#include "sys/seccomp_profile.h"

extern "C" const unsigned char osb_seccomp_program[];
extern "C" const unsigned char osb_seccomp_program_end[];

namespace osb::launcher {
namespace {

constexpr uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS, kForbidden = SECCOMP_RET_ERRNO | EPERM;

uint32_t answer(uint32_t number, uint64_t first = 0, uint64_t second = 0,
                uint32_t arch = seccomp_arch_native()) {
  seccomp_data data{static_cast<int>(number), arch, 0, {first, second}};
  uint32_t accumulator = 0;
  size_t count =
      static_cast<size_t>(osb_seccomp_program_end - osb_seccomp_program) / sizeof(struct sock_filter);
  for (size_t at = 0; at < count; ++at) {
    sock_filter step;
    std::memcpy(&step, osb_seccomp_program + at * sizeof step, sizeof step);
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
    EXPECT_EQ(answer(number, AF_UNIX), found == named.end() ? kUnknown : found->second) << number;
  }
  EXPECT_EQ(answer(0x7fffffff), kUnknown);
  EXPECT_EQ(answer(0xffffffff), kUnknown);
}

TEST(SeccompProgram, OtherTablesOfCallsAreClosed) {
  for (uint32_t number = 0; number < 600; ++number) {
    EXPECT_NE(answer(number, AF_UNIX, 0, AUDIT_ARCH_I386), SECCOMP_RET_ALLOW) << number;
    EXPECT_EQ(answer(0x40000000 | number, AF_UNIX), kUnknown) << number;
  }
}

TEST(SeccompProgram, LooksAtWhatTheKernelUsesOfAnArgument) {
  EXPECT_EQ(answer(__NR_ioctl, 0, TCGETS), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(__NR_ioctl, 0, TIOCSTI), kForbidden);
  EXPECT_EQ(answer(__NR_ioctl, 0, uint64_t{1} << 32 | TIOCSTI), kForbidden);
  EXPECT_EQ(answer(__NR_clone, CLONE_NEWUSER), kForbidden);
  EXPECT_EQ(answer(__NR_clone, CLONE_VM), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(__NR_clone3), kUnknown);
  EXPECT_EQ(answer(__NR_socket, AF_PACKET), SECCOMP_RET_ERRNO | EAFNOSUPPORT);
  EXPECT_EQ(answer(__NR_socket, AF_UNIX), SECCOMP_RET_ALLOW);
}

}  // namespace
}  // namespace osb::launcher
