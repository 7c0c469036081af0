#include <linux/kcmp.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "tools.h"

namespace osb::probe {
namespace {

// A tracer that ends lets go of what it traces, so each attach lives only as long as its child. The address
// is one that nothing maps: memory is neither read nor written, only the right to do so is tested.
void run(Attempts& a, Args) {
  a.call("ptrace(2)", "seize process 1",
         in_child([] { return ::ptrace(PTRACE_SEIZE, 1, nullptr, nullptr); }));
  a.call("ptrace(2)", "attach to process 1",
         in_child([] { return ::ptrace(PTRACE_ATTACH, 1, nullptr, nullptr); }));
  char byte = 0;
  const iovec here = {&byte, 1}, there = {reinterpret_cast<void*>(8), 1};
  a.gate("process_vm_readv(2)", "process 1", ::process_vm_readv(1, &here, 1, &there, 1, 0));
  a.gate("process_vm_writev(2)", "process 1", ::process_vm_writev(1, &here, 1, &there, 1, 0));
  a.call("kcmp(2)", "process 1", ::syscall(SYS_kcmp, ::getpid(), 1, KCMP_VM, 0, 0));
}

}  // namespace

extern const Probe probe_ptrace = {"ptrace", "trace process 1 and read or write its memory", nullptr, run};

}  // namespace osb::probe
