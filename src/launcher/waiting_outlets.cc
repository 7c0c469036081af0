#include "launcher/waiting_outlets.h"

#include <sys/epoll.h>

#include "base/log.h"

namespace osb::launcher {

Result<WaitingOutlets> WaitingOutlets::open() {
  WaitingOutlets made;
  made.epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!made.epoll_.valid()) return fail_errno("epoll_create1");
  return made;
}

std::optional<std::string> WaitingOutlets::next() const {
  struct epoll_event event{};
  if (::epoll_wait(epoll_.get(), &event, 1, 0) != 1) return std::nullopt;
  auto found = ids_.find(event.data.u64);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

void WaitingOutlets::put(const std::string& id, sys::Outlet outlet, Watched watched) {
  (void)take(id);
  Waiting waiting{++last_serial_, std::move(outlet), watched};
  struct epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = waiting.serial;
  for (const Fd& socket : waiting.sockets) {
    if (watched == Watched::no) break;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) < 0)
      log::error("a sandbox will not be heard", {{"error", fail_errno("epoll_ctl").error().message}});
  }
  if (watched == Watched::yes) ids_[waiting.serial] = id;
  outlets_[id] = std::move(waiting);
}

sys::Outlet WaitingOutlets::take(const std::string& id) {
  auto found = outlets_.extract(id);
  if (found.empty()) return {};
  Waiting& waiting = found.mapped();
  ids_.erase(waiting.serial);
  for (const Fd& socket : waiting.sockets) {
    // Closing would not do: a child that was forked meanwhile, or whoever gets it now, has the socket, too.
    if (waiting.watched == Watched::yes) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket.get(), nullptr);
  }
  return std::move(waiting.sockets);
}

}  // namespace osb::launcher
