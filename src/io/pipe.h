#pragma once

// A pipe through which bytes are moved from one socket to another without a copy (splice).

#include "base/fd.h"

namespace osb::io {

struct Pipe {
  static constexpr size_t kCapacity = 1 << 20;
  // Where the user has many large pipes already the kernel gives less, which costs more turns and nothing
  // else. Neither end blocks.
  static Result<Pipe> create();

  Fd read, write;
};

}  // namespace osb::io
