#include "launcher/channel.h"

#include <sys/epoll.h>

namespace osb::launcher {

Result<std::optional<Request>> Channel::receive() {
  if (!unsent_.empty()) {
    TRY(flush());
    return std::nullopt;
  }
  auto received = receive_message(socket_.get());
  if (!received && received.error().code == Code::exhausted) return std::nullopt;
  // A message that was cut, a socket that fails: as a peer that is gone, which it will be.
  if (!received || received->bytes.empty()) return fail(Code::unavailable, "the " + peer_ + " is gone");
  Request request = TRY(in_context("the " + peer_ + " sent nonsense", decode_request(received->bytes)));
  if (allowed_.contains(request.verb)) return request;
  Answer refusal;
  refusal.tag = request.tag;
  refusal.error = EPERM;
  refusal.code = static_cast<uint32_t>(Code::permission_denied);
  refusal.message = "refused: the " + peer_ + " may not ask for " + std::string(to_string(request.verb));
  TRY(answer(std::move(refusal)));
  return std::nullopt;
}

Result<void> Channel::answer(Answer answer) {
  unsent_.push_back(std::move(answer));
  return flush();
}

Result<void> Channel::flush() {
  while (!unsent_.empty()) {
    auto sent = send_message(socket_.get(), encode_head(unsent_.front()), unsent_.front().descriptors);
    if (!sent && sent.error().code == Code::exhausted) return {};
    if (!sent) {
      unsent_.clear();
      return std::unexpected(std::move(sent.error()).in("the " + peer_ + " does not take its answers"));
    }
    unsent_.pop_front();
  }
  return {};
}

uint32_t Channel::interest(bool busy) const {
  if (!unsent_.empty()) return EPOLLOUT;
  return busy ? 0 : EPOLLIN;
}

}  // namespace osb::launcher
