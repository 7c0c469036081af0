#include <sys/swap.h>

#include "tools.h"

namespace osb::probe {
namespace {

void run(Attempts& a, Args) {
  a.gate("swapon(2)", "missing file", ::swapon("/osb-probe-no-such-file", 0));
  a.gate("swapoff(2)", "missing file", ::swapoff("/osb-probe-no-such-file"));
}

}  // namespace

extern const Probe probe_swap = {"swap", "add or remove swap space", nullptr, run};

}  // namespace osb::probe
