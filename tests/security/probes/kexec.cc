#include "tools.h"

namespace osb::probe {
namespace {

void run(Attempts& a, Args) {
  const unsigned long no_such_flags = 0xff00;
  a.gate("kexec_load(2)", "invalid flags", ::syscall(SYS_kexec_load, 0, 0, nullptr, no_such_flags));
#ifdef SYS_kexec_file_load
  a.gate("kexec_file_load(2)", "invalid flags",
         ::syscall(SYS_kexec_file_load, -1, -1, 0, nullptr, no_such_flags));
#endif
}

}  // namespace

extern const Probe probe_kexec = {"kexec", "load another kernel", "replaces the running kernel when it works",
                                  run};

}  // namespace osb::probe
