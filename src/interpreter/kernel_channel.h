#pragma once

// execd's ends of a kernel's descriptors, and the kernel's ends until it has them.

#include "base/fd.h"

namespace osb::interpreter {

struct KernelEnds {
  Fd out, err, socket;
};

struct KernelChannel {
  KernelEnds ours;    // non-blocking
  KernelEnds theirs;  // blocking; all are close-on-exec

  static Result<KernelChannel> create();
};

}  // namespace osb::interpreter
