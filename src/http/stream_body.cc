#include "http/stream_body.h"

#include <array>
#include <cstring>

namespace osb::http {

void StreamBody::begin(BodyDecoder decoder, bool expects_continue) {
  decoder_ = std::move(decoder);
  // Bytes of the body that are here already show that the client does not wait.
  expects_continue_ = expects_continue && !decoder_.done() && wire_.in().empty();
  answer_started_ = false;
  credit_ = pace_.credit;
  slow_ = pace_.credit == io::Duration::zero();
  returned_.clear();
}

bool StreamBody::put_back(std::string bytes) {
  bytes.append(returned_);
  returned_ = std::move(bytes);
  return true;
}

std::optional<std::string> StreamBody::take_all() {
  auto left = decoder_.declared() ? decoder_.remaining() : std::nullopt;
  if (!returned_.empty() || !left || *left > wire_.in().size()) return std::nullopt;
  std::string all(wire_.in().view().substr(0, static_cast<size_t>(*left)));
  wire_.in().consume(all.size());
  decoder_.skip(all.size());
  return all;
}

void StreamBody::skip_received() {
  constexpr int kMaxFills = 16;
  std::array<char, 4096> scratch;
  int fills = 0;
  while (!decoder_.done()) {
    if (wire_.in().empty() && (++fills > kMaxFills || wire_.fill_now(Wire::kBodyBuffer) == 0)) return;
    auto step = decoder_.decode(wire_.in().view(), scratch);
    if (!step) return wire_.stop_reading();
    wire_.in().consume(step->consumed);
  }
}

io::Duration StreamBody::patience() const { return slow_ ? pace_.silence : std::min(pace_.silence, credit_); }

// Ticks are coarse, but a wait is as often counted too long as too short.
Result<void> StreamBody::account(TimePoint waited_from, size_t got) {
  if (slow_) return {};
  auto earned = std::chrono::nanoseconds(got * (std::nano::den / std::max<uint64_t>(pace_.rate, 1)));
  credit_ = std::min(credit_ - (wire_.now() - waited_from) + earned, pace_.credit);
  if (credit_ > io::Duration::zero() || decoder_.done()) return {};
  wire_.stop_reading();
  return fail(Code::timeout, "the body comes too slowly");
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

Result<size_t> StreamBody::note_direct(TimePoint waited_from, size_t got) {
  if (got == 0) TRY(decoder_.end_of_stream());
  decoder_.skip(got);
  if (got > 0) TRY(account(waited_from, got));
  return got;
}

uint64_t StreamBody::direct() const {
  return returned_.empty() && wire_.in().empty() ? decoder_.direct() : 0;
}

Task<Result<size_t>> StreamBody::move_some(int pipe, size_t limit) {
  if (expects_continue_) CO_TRY(ask_for_body());
  auto deadline = wire_.deadline_after(patience());
  TimePoint from = wire_.now();
  limit = static_cast<size_t>(std::min<uint64_t>(direct(), limit));
  size_t got = CO_TRY(co_await wire_.move(pipe, limit, deadline));
  co_return note_direct(from, got);
}

Task<Result<size_t>> StreamBody::read_some(std::span<char> into) {
  if (!returned_.empty()) {
    size_t size = std::min(into.size(), returned_.size());
    std::memcpy(into.data(), returned_.data(), size);
    returned_.erase(0, size);
    co_return size;
  }
  while (!decoder_.done() && !into.empty()) {
    if (!wire_.in().empty()) {
      auto step = decoder_.decode(wire_.in().view(), into);
      if (!step) {
        wire_.stop_reading();  // where the next message starts is unknown from here on
        co_return std::unexpected(std::move(step.error()));
      }
      wire_.in().consume(step->consumed);
      if (step->produced > 0) co_return step->produced;
      if (step->consumed > 0) continue;
    }
    if (expects_continue_) CO_TRY(ask_for_body());
    auto deadline = wire_.deadline_after(patience());
    TimePoint from = wire_.now();
    if (uint64_t direct = decoder_.direct()) {
      into = into.first(static_cast<size_t>(std::min<uint64_t>(direct, into.size())));
      size_t got = CO_TRY(co_await wire_.read(into, deadline));
      co_return note_direct(from, got);
    } else {
      size_t got = CO_TRY(co_await wire_.fill(Wire::kBodyBuffer, deadline));
      if (got == 0) CO_TRY(decoder_.end_of_stream());
      if (got > 0) CO_TRY(account(from, got));
    }
  }
  co_return 0;
}

}  // namespace osb::http
