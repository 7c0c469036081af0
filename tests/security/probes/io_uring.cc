#include <linux/io_uring.h>

#include "tools.h"

namespace osb::probe {
namespace {

// Operations on a ring are not seen by the system call filter.
void run(Attempts& a, Args) {
  io_uring_params parameters = {};
  File ring = static_cast<int>(::syscall(SYS_io_uring_setup, 4, &parameters));
  a.call("io_uring_setup(2)", "", ring.fd());
  a.gate("io_uring_enter(2)", "no ring", ::syscall(SYS_io_uring_enter, -1, 0, 0, 0, nullptr, 0));
  a.gate("io_uring_register(2)", "no ring", ::syscall(SYS_io_uring_register, -1, 0, nullptr, 0));
}

}  // namespace

extern const Probe probe_io_uring = {"io_uring", "do I/O past the system call filter (io_uring)", nullptr,
                                     run};

}  // namespace osb::probe
