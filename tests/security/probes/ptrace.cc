#include <linux/kcmp.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "tools.h"

#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

namespace osb::probe {
namespace {

// Attaching stops the traced process, and the end of the tracer alone does not wake it.
long attach_and_let_go() {
  if (::ptrace(PTRACE_ATTACH, 1, nullptr, nullptr) < 0) return -1;
  ::waitpid(1, nullptr, __WALL);
  ::ptrace(PTRACE_DETACH, 1, nullptr, nullptr);
  return 0;
}

// The address is one that nothing maps: memory is neither read nor written, only the right to do so is
// tested.
void run(Attempts& a, Args) {
  a.call("ptrace(2)", "seize process 1",
         in_child([] { return ::ptrace(PTRACE_SEIZE, 1, nullptr, nullptr); }));
  a.call("ptrace(2)", "attach to process 1", in_child(attach_and_let_go));
  char byte = 0;
  const iovec here = {&byte, 1}, there = {reinterpret_cast<void*>(8), 1};
  a.gate("process_vm_readv(2)", "process 1", ::process_vm_readv(1, &here, 1, &there, 1, 0));
  a.gate("process_vm_writev(2)", "process 1", ::process_vm_writev(1, &here, 1, &there, 1, 0));
  File init = static_cast<int>(::syscall(SYS_pidfd_open, 1, 0));
  a.gate("process_madvise(2)", "process 1",
         ::syscall(SYS_process_madvise, init.fd(), &there, 1, MADV_COLD, 0));
  a.call("kcmp(2)", "process 1", ::syscall(SYS_kcmp, ::getpid(), 1, KCMP_VM, 0, 0));
}

}  // namespace

extern const Probe probe_ptrace = {"ptrace", "trace process 1 and read or write its memory", nullptr, run};

}  // namespace osb::probe
