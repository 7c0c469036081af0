#include "execd/pipes.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <memory>

#include "io/descriptor.h"

namespace osb::execd {

Result<PipeEnds> make_pipe(Ours ours) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd reader(ends[0]), writer(ends[1]);
  PipeEnds out = ours == Ours::reads ? PipeEnds{std::move(reader), std::move(writer)}
                                     : PipeEnds{std::move(writer), std::move(reader)};
  if (::fcntl(out.ours.get(), F_SETFL, O_NONBLOCK) < 0) return fail_errno("pipe");
  return out;
}

Result<Fd> open_pipe(PipeEnd& end, Ours ours) {
  PipeEnds ends = TRY(make_pipe(ours));
  TRY(io::assign(end, std::move(ends.ours)));
  return std::move(ends.theirs);
}

std::span<char> pipe_buffer() {
  static const std::unique_ptr<char[]> buffer(new char[kPipeBytes]);
  return {buffer.get(), kPipeBytes};
}

size_t waiting_in(int pipe) {
  int waiting = 0;
  return ::ioctl(pipe, FIONREAD, &waiting) == 0 && waiting > 0 ? static_cast<size_t>(waiting) : 0;
}

}  // namespace osb::execd
