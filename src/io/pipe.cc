#include "io/pipe.h"

#include <fcntl.h>
#include <unistd.h>

namespace osb::io {

Result<Pipe> Pipe::create() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) return fail_errno("pipe");
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(kCapacity));
  return pipe;
}

}  // namespace osb::io
