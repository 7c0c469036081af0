#include <sys/resource.h>

#include "tools.h"

namespace osb::probe {
namespace {

// When core_pattern names a program, the kernel starts it as the host's root, outside, with the crashed
// process's memory as input; a limit of zero does not stop that, a limit of one byte does.
void run(Attempts& a, Args) {
  rlimit core = {};
  if (::getrlimit(RLIMIT_CORE, &core) < 0) return void(a.call("getrlimit(2)", "", -1));
  if (core.rlim_max == 1)
    a.stopped("the limit on core files is one byte: no file, no handler");
  else
    a.got("a crash can reach the host's core handler: hard limit " +
          (core.rlim_max == RLIM_INFINITY ? std::string("unlimited") : std::to_string(core.rlim_max)));
  if (core.rlim_max == RLIM_INFINITY) return;
  a.call("setrlimit(2)", "larger core files", in_child([&] {
           const rlimit more = {core.rlim_max + 1, core.rlim_max + 1};
           return ::setrlimit(RLIMIT_CORE, &more);
         }));
}

}  // namespace

extern const Probe probe_core_dump = {"core_dump", "have the host's core handler run on a crash", nullptr,
                                      run};

}  // namespace osb::probe
