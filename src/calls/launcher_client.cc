#include "calls/launcher_client.h"

#include <poll.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "io/descriptor.h"

namespace osb::calls {
namespace {

Task<Result<void>> wait_for(io::Event& event) {
  co_await event.wait();
  co_return Result<void>{};
}

}  // namespace

LauncherClient::LauncherClient(io::Executor executor, Fd channel, std::function<void()> on_lost,
                               io::Duration deadline)
    : executor_(executor), channel_(executor), on_lost_(std::move(on_lost)), deadline_(deadline) {
  auto taken = io::assign(channel_, std::move(channel));
  // Without it run() ends at once, and says so.
  if (!taken) log::error("no channel to the launcher", {{"error", taken.error().message}});
}

Task<> LauncherClient::run() {
  bool closing = false;  // our own doing: the launcher is still there
  while (true) {
    auto received = launcher::receive_message(channel_.native_handle());
    if (!received && received.error().code == Code::exhausted) {
      auto readable = co_await io::wait_readable(channel_);
      if (readable) continue;
      closing = readable.error().code == Code::cancelled;
      break;
    }
    if (!received || received->bytes.empty()) break;
    auto answer = launcher::decode_answer(received->bytes);
    if (!answer) {
      log::error("the launcher sent nonsense", {{"error", answer.error().message}});
      break;
    }
    answer->descriptors = std::move(received->descriptors);
    auto found = pending_.find(answer->tag);
    if (found == pending_.end()) continue;  // whoever asked gave up; the descriptors close
    auto waiting = std::move(found->second);
    pending_.erase(found);
    if (answer->error != 0) {
      waiting->answer =
          std::unexpected(Error{static_cast<Code>(answer->code), answer->error, std::move(answer->message)});
    } else {
      waiting->answer = std::move(*answer);
    }
    waiting->done.set();
  }
  lost_ = true;
  for (auto& [tag, waiting] : std::exchange(pending_, {})) waiting->done.set();
  if (!closing) on_lost_();
}

bool LauncherClient::has_room() const {
  pollfd channel{const_cast<io::asio::posix::stream_descriptor&>(channel_).native_handle(), POLLOUT, 0};
  return !lost_ && ::poll(&channel, 1, 0) == 1 && channel.revents == POLLOUT;
}

Task<Result<void>> LauncherClient::send(std::string bytes) {
  while (true) {
    auto sent = launcher::send_message(channel_.native_handle(), bytes, {});
    if (sent || sent.error().code != Code::exhausted) co_return sent;
    auto [error] = co_await channel_.async_wait(io::asio::posix::descriptor_base::wait_write,
                                                io::asio::as_tuple(io::asio::use_awaitable));
    if (error) co_return std::unexpected(io::to_error("wait for the launcher", error));
  }
}

Task<Result<launcher::Answer>> LauncherClient::call(launcher::Verb verb, std::string body,
                                                    io::Duration deadline) {
  if (lost_) co_return fail(Code::unavailable, "the launcher is gone");
  uint64_t tag = next_tag_++;
  auto waiting = std::make_shared<Pending>(executor_);
  pending_[tag] = waiting;
  auto sent = co_await send(launcher::encode(launcher::Request{tag, verb, std::move(body)}));
  if (!sent) {
    pending_.erase(tag);
    co_return std::unexpected(std::move(sent).error());
  }
  auto done = co_await io::with_deadline(deadline, "launcher", wait_for(waiting->done));
  if (!done) {
    pending_.erase(tag);
    co_return std::unexpected(std::move(done).error());
  }
  co_return std::move(waiting->answer);
}

}  // namespace osb::calls
