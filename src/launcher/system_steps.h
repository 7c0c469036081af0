#pragma once

// The part of every plan that is about the kernel's own trees: /proc, /sys, /dev, and what of /proc is hidden
// or read-only. It is the same for all sandboxes. A plan shows it, so that one can read what happens; the
// launcher refuses a plan in which it is not there whole, once and in this order.

#include <vector>

#include "launcher/plan.h"

namespace osb::launcher {

const std::vector<Step>& system_steps();

}  // namespace osb::launcher
