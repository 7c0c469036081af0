#pragma once

// Pipes between execd and what it starts. Our end never blocks and belongs to the loop; theirs does, as
// programs expect of a standard output (the two ends have flags of their own).
//
// What is read goes through one buffer for all: nothing suspends between reading into it and using it, and
// whoever takes bytes out of it has copied them before it reads another pipe.

#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <span>
#include <string_view>

#include "base/fd.h"

namespace osb::execd {

using PipeEnd = boost::asio::posix::stream_descriptor;

struct PipeEnds {
  Fd ours, theirs;
};
enum class Ours { reads, writes };
Result<PipeEnds> make_pipe(Ours ours);
// Makes a pipe and keeps our end; the result is theirs.
Result<Fd> open_pipe(PipeEnd& end, Ours ours = Ours::reads);

inline constexpr size_t kPipeBytes = 64 * 1024;  // what a pipe holds
std::span<char> pipe_buffer();
// How much could be read now; 0 also of a descriptor that is closed.
size_t waiting_in(int pipe);

// Gives `take` what is there, up to `limit` bytes. False at the end of the pipe.
template <class Take>
bool read_pipe(int pipe, size_t limit, Take&& take) {
  std::span<char> buffer = pipe_buffer();
  ssize_t n = ::read(pipe, buffer.data(), std::min(limit, buffer.size()));
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n > 0) take(std::string_view(buffer.data(), static_cast<size_t>(n)));
  return n > 0;
}

// Gives `take` what is in the pipe now and no more: somebody else may keep filling it for ever.
template <class Take>
void drain_pipe(int pipe, Take&& take) {
  std::span<char> buffer = pipe_buffer();
  for (size_t left = waiting_in(pipe); left > 0;) {
    ssize_t n = ::read(pipe, buffer.data(), std::min(left, buffer.size()));
    if (n <= 0) return;
    take(std::string_view(buffer.data(), static_cast<size_t>(n)));
    left -= std::min(left, static_cast<size_t>(n));
  }
}

}  // namespace osb::execd
