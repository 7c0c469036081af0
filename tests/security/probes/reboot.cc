#include "tools.h"

namespace osb::probe {
namespace {

// The kernel checks the right to reboot before it looks at the magic numbers; zeros are no magic.
void run(Attempts& a, Args) { a.gate("reboot(2)", "without magic", ::syscall(SYS_reboot, 0, 0, 0, nullptr)); }

}  // namespace

extern const Probe probe_reboot = {"reboot", "restart the machine", "restarts the machine when it works",
                                   run};

}  // namespace osb::probe
