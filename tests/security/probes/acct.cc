#include "tools.h"

namespace osb::probe {
namespace {

// A missing file: accounting is never switched on or off.
void run(Attempts& a, Args) { a.gate("acct(2)", "missing file", ::acct("/osb-probe-no-such-file")); }

}  // namespace

extern const Probe probe_acct = {"acct", "switch process accounting", nullptr, run};

}  // namespace osb::probe
