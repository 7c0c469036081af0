#include "server/clock_changes.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <limits>

#include "base/fd.h"
#include "io/socket.h"

namespace osb::server {

// A timer for a time that never comes. The kernel cancels it when the clock is set discontinuously
// (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET); it has to be set anew after that.
Result<void> ClockChanges::arm() {
  itimerspec never{};
  never.it_value.tv_sec = std::numeric_limits<int32_t>::max();
  int flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
  if (::timerfd_settime(fd_.native_handle(), flags, &never, nullptr) < 0)
    return fail_errno("timerfd_settime");
  return {};
}

Result<ClockChanges> ClockChanges::open(io::Executor executor) {
  Fd fd(::timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!fd.valid()) return fail_errno("timerfd_create");
  boost::asio::posix::stream_descriptor descriptor(executor);
  boost::system::error_code error;
  descriptor.assign(fd.get(), error);
  if (error) return std::unexpected(io::to_error("watch the clock", error));
  static_cast<void>(fd.release());
  ClockChanges changes(std::move(descriptor));
  TRY(changes.arm());
  return changes;
}

io::Task<Result<void>> ClockChanges::next() {
  CO_TRY(co_await io::wait_readable(fd_));
  uint64_t expirations = 0;
  // ECANCELED is what it is all about; anything else is armed again all the same.
  [[maybe_unused]] ssize_t got = ::read(fd_.native_handle(), &expirations, sizeof expirations);
  co_return arm();
}

}  // namespace osb::server
