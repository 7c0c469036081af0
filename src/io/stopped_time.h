#pragma once

// For limits on the work of somebody who may be stopped on purpose: no limit of ours runs meanwhile.

#include <chrono>
#include <functional>

namespace osb::io {

// How long the other side has been stopped so far, all stops together. It never falls.
using StoppedTime = std::function<std::chrono::steady_clock::duration()>;

}  // namespace osb::io
