#include <sys/fanotify.h>

#include "tools.h"

namespace osb::probe {
namespace {

void run(Attempts& a, Args) {
  File watch = static_cast<int>(::syscall(SYS_fanotify_init, FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY));
  a.call("fanotify_init(2)", "content class", watch.fd());
  // No pages are named, so none move.
  a.gate("move_pages(2)", "process 1", ::syscall(SYS_move_pages, 1, 0, nullptr, nullptr, nullptr, 0));
  a.gate("migrate_pages(2)", "process 1", ::syscall(SYS_migrate_pages, 1, 0, nullptr, nullptr));
  // Without a controlling terminal there is none to hang up.
  a.call("vhangup(2)", "", in_child([] { return ::setsid() < 0 ? -1 : ::syscall(SYS_vhangup); }));
#ifdef SYS_lookup_dcookie
  a.gate("lookup_dcookie(2)", "no cookie", ::syscall(SYS_lookup_dcookie, 0ul, nullptr, 0));
#endif
}

}  // namespace

extern const Probe probe_kernel_surface = {
    "kernel_surface", "use further calls that only host software needs (fanotify, move_pages, vhangup)",
    nullptr, run};

}  // namespace osb::probe
