#include "tools.h"

namespace osb::probe {
namespace {

// The right is asked for in a child that ends without touching a port.
void run(Attempts& a, Args) {
#ifdef SYS_iopl
  a.call("iopl(2)", "level 3", in_child([] { return ::syscall(SYS_iopl, 3); }));
  a.call("ioperm(2)", "port 0x80", in_child([] { return ::syscall(SYS_ioperm, 0x80, 1, 1); }));
#else
  a.skipped("this architecture has no I/O ports");
#endif
}

}  // namespace

extern const Probe probe_io_ports = {"io_ports", "get access to the machine's I/O ports", nullptr, run};

}  // namespace osb::probe
