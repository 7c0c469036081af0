#include "http/stream_body.h"

namespace osb::http {

void StreamBody::begin(BodyDecoder decoder, bool expects_continue) {
  decoder_ = std::move(decoder);
  // Bytes of the body that are here already show that the client does not wait.
  expects_continue_ = expects_continue && !decoder_.done() && wire_.in().empty();
  answer_started_ = false;
}

// One attempt without waiting: the socket has room for 25 bytes, since nothing was written since the last
// answer. Nothing taken is harmless (the client goes on after a while), half a line is not.
Result<void> StreamBody::ask_for_body() {
  expects_continue_ = false;
  if (answer_started_) return {};
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  std::string_view pieces[] = {kContinue};
  size_t sent = TRY(wire_.write_now(pieces));
  if (sent == 0 || sent == kContinue.size()) return {};
  wire_.break_off();
  return fail(Code::unavailable, "the client does not take its 100 Continue");
}

Task<Result<size_t>> StreamBody::read_some(std::span<char> into) {
  while (!decoder_.done() && !into.empty()) {
    if (!wire_.in().empty()) {
      auto step = decoder_.decode(wire_.in().view(), into);
      if (!step) {
        wire_.break_off();  // where the next message starts is unknown from here on
        co_return std::unexpected(std::move(step.error()));
      }
      wire_.in().consume(step->consumed);
      if (step->produced > 0) co_return step->produced;
      if (step->consumed > 0) continue;
    }
    if (expects_continue_) CO_TRY(ask_for_body());
    auto deadline = wire_.deadline_after(read_limit_);
    if (uint64_t direct = decoder_.direct()) {
      into = into.first(static_cast<size_t>(std::min<uint64_t>(direct, into.size())));
      size_t got = CO_TRY(co_await wire_.read(into, deadline));
      if (got > 0) {
        decoder_.skip(got);
        co_return got;
      }
      CO_TRY(decoder_.end_of_stream());
    } else if (CO_TRY(co_await wire_.fill(Wire::kBodyBuffer, deadline)) == 0) {
      CO_TRY(decoder_.end_of_stream());
    }
  }
  co_return 0;
}

}  // namespace osb::http
