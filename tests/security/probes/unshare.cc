#include "namespace_flags.h"
#include "tools.h"

namespace osb::probe {
namespace {

void run(Attempts& a, Args) {
  for (const NamespaceFlag& f : kNamespaceFlags)
    a.call("unshare(2)", f.name, in_child([&] { return ::syscall(SYS_unshare, f.flag); }));
  a.call("unshare(2)", "CLONE_NEWTIME", in_child([] { return ::syscall(SYS_unshare, CLONE_NEWTIME); }));
  // Bits above the 32nd are ignored by some filters and by the kernel.
  a.call("unshare(2)", "CLONE_NEWUSER with high bits",
         in_child([] { return ::syscall(SYS_unshare, CLONE_NEWUSER | (1ul << 40)); }));
}

}  // namespace

extern const Probe probe_unshare = {"unshare", "make new namespaces with unshare(2), each kind", nullptr,
                                    run};

}  // namespace osb::probe
