#include "interpreter/kernel_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace osb::interpreter {
namespace {

Result<void> make_pipe(Fd& read_end, Fd& write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return fail_errno("pipe");
  read_end = Fd(ends[0]);
  write_end = Fd(ends[1]);
  // The two ends have flags of their own.
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) return fail_errno("pipe");
  return {};
}

}  // namespace

Result<KernelChannel> KernelChannel::create() {
  KernelChannel channel;
  TRY(make_pipe(channel.ours.out, channel.theirs.out));
  TRY(make_pipe(channel.ours.err, channel.theirs.err));
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return fail_errno("socketpair");
  channel.ours.socket = Fd(ends[0]);
  channel.theirs.socket = Fd(ends[1]);
  return channel;
}

}  // namespace osb::interpreter
