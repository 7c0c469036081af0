#include "interpreter/kernel_channel.h"

#include <sys/socket.h>

#include "execd/pipes.h"

namespace osb::interpreter {

Result<KernelChannel> KernelChannel::create() {
  KernelChannel channel;
  auto out = TRY(execd::make_pipe(execd::Ours::reads));
  auto err = TRY(execd::make_pipe(execd::Ours::reads));
  channel.ours = {std::move(out.ours), std::move(err.ours), Fd()};
  channel.theirs = {std::move(out.theirs), std::move(err.theirs), Fd()};
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return fail_errno("socketpair");
  channel.ours.socket = Fd(ends[0]);
  channel.theirs.socket = Fd(ends[1]);
  return channel;
}

}  // namespace osb::interpreter
