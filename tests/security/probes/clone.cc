#include <signal.h>

#include "namespace_flags.h"
#include "tools.h"

namespace osb::probe {
namespace {

// The new process ends at once; it shares nothing with this one.
long clone_with(uint64_t flags) {
#if defined(__s390x__)
  const long child = ::syscall(SYS_clone, 0, flags | SIGCHLD, 0, 0, 0);
#else
  const long child = ::syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
#endif
  if (child == 0) ::_exit(0);
  if (child > 0) ::waitpid(static_cast<pid_t>(child), nullptr, __WALL);
  return child;
}

void run(Attempts& a, Args) {
  for (const NamespaceFlag& f : kNamespaceFlags)
    a.call("clone(2)", f.name, in_child([&] { return clone_with(f.flag); }));
  a.call("clone(2)", "CLONE_NEWUSER with high bits",
         in_child([] { return clone_with(CLONE_NEWUSER | (1ul << 40)); }));
}

}  // namespace

extern const Probe probe_clone = {"clone", "make new namespaces with clone(2), each kind", nullptr, run};

}  // namespace osb::probe
