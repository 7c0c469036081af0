#include "execd/connections.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/descriptor.h"
#include "sys/descriptors.h"

namespace osb::execd {
namespace {

constexpr int kAside = 16;
constexpr auto kPause = milliseconds(100);

void hand_out(Core& core, char kind, std::vector<Fd> taken, const Receivers& receivers) {
  for (Fd& fd : taken) {
    auto socket = io::adopt(core.executor, std::move(fd));
    if (!socket) {
      log::warn("a connection was not taken", {{"reason", socket.error().message}});
    } else if (kind == 'a') {
      receivers.api(std::move(*socket));
    } else if (kind == 'c') {
      receivers.control(std::move(*socket));
    }
  }
}

}  // namespace

Result<Fd> take_channel(int number) {
  Fd channel(::fcntl(number, F_DUPFD_CLOEXEC, kAside));
  if (!channel.valid()) return fail_errno("take the channel");
  if (::fcntl(channel.get(), F_SETFL, O_NONBLOCK) < 0) return fail_errno("channel");
  if (number > 2) {
    ::close(number);
    return channel;
  }
  Fd null = TRY(open_at(AT_FDCWD, "/dev/null", O_RDWR));
  if (::dup2(null.get(), number) < 0) return fail_errno("dup2");
  return channel;
}

io::Task<> take_connections(Core& core, Fd channel, Receivers receivers) {
  if (::send(channel.get(), "h", 1, MSG_NOSIGNAL) != 1)
    co_return log::error("nobody is on the other side of the channel");
  int number = channel.get();
  io::asio::posix::stream_descriptor ready(core.executor);
  if (auto assigned = io::assign(ready, std::move(channel)); !assigned)
    co_return log::error("the channel cannot be used", {{"reason", assigned.error().message}});
  while (co_await io::wait_readable(ready)) {
    while (true) {
      char kind = 0;
      std::vector<Fd> taken;
      auto got = sys::receive_with_descriptors(number, {&kind, 1}, taken, MSG_DONTWAIT);
      if (!got && got.error().sys_errno == EAGAIN) break;
      // There was no number free for it, so the kernel has dropped that one. Others will come.
      if (!got && (got.error().code == Code::too_large || got.error().code == Code::exhausted)) {
        co_await io::sleep_for(kPause);
        continue;
      }
      if (!got || *got == 0) co_return log::error("nobody is on the other side of the channel any more");
      hand_out(core, kind, std::move(taken), receivers);
    }
  }
}

}  // namespace osb::execd
