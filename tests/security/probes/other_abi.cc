#include <linux/keyctl.h>
#include <sched.h>

#include "tools.h"

namespace osb::probe {
namespace {

#if defined(__x86_64__)
// The 32-bit entry has its own numbers: a filter written for the 64-bit ones must close it as a whole.
long call32(long number, long first, long second = 0) {
  long result = number;
  asm volatile("int $0x80"
               : "+a"(result)
               : "b"(first), "c"(second), "d"(0L), "S"(0L)
               : "memory", "r8", "r9", "r10", "r11");
  if (static_cast<int>(result) < 0) return errno = -static_cast<int>(result), -1;
  return result;
}

constexpr long kX32 = 0x40000000;

void run(Attempts& a, Args) {
  a.call("int 0x80", "unshare CLONE_NEWUSER", in_child([] { return call32(310, CLONE_NEWUSER); }));
  a.call("int 0x80", "keyctl",
         in_child([] { return call32(288, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING); }));
  a.call("x32", "unshare CLONE_NEWUSER",
         in_child([] { return ::syscall(kX32 | SYS_unshare, CLONE_NEWUSER); }));
  a.gate("x32", "io_uring_setup", in_child([] { return ::syscall(kX32 | SYS_io_uring_setup, 4, nullptr); }));
}
#else
void run(Attempts& a, Args) { a.skipped("this architecture has one system call table here"); }
#endif

}  // namespace

extern const Probe probe_other_abi = {"other_abi", "make forbidden calls through the 32-bit and x32 entries",
                                      nullptr, run};

}  // namespace osb::probe
