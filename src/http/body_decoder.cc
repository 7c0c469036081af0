#include "http/body_decoder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "http/head_parse.h"

namespace osb::http {
namespace {

std::unexpected<Error> malformed(std::string what) {
  return fail(Code::invalid_argument, "chunked body: " + std::move(what));
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

BodyDecoder BodyDecoder::with_length(uint64_t length) {
  BodyDecoder d;
  d.declared_ = length;
  d.left_ = length;
  d.state_ = length ? State::payload : State::done;
  return d;
}

BodyDecoder BodyDecoder::chunked() {
  BodyDecoder d;
  d.kind_ = Kind::chunked;
  d.state_ = State::size;
  d.declared_.reset();
  return d;
}

BodyDecoder BodyDecoder::until_close() {
  BodyDecoder d;
  d.kind_ = Kind::until_close;
  d.state_ = State::payload;
  d.left_ = std::numeric_limits<uint64_t>::max();
  d.declared_.reset();
  return d;
}

std::optional<uint64_t> BodyDecoder::remaining() const {
  if (done()) return 0;
  if (kind_ == Kind::length) return left_;
  return std::nullopt;
}

void BodyDecoder::skip(uint64_t count) {
  if (kind_ == Kind::until_close) return;
  left_ -= std::min(count, left_);
  if (left_ > 0) return;
  state_ = kind_ == Kind::chunked ? State::payload_cr : State::done;
}

Result<BodyDecoder::Step> BodyDecoder::decode(std::string_view in, std::span<char> out) {
  Step step;
  while (step.consumed < in.size() && !done()) {
    if (state_ == State::payload) {
      size_t n = static_cast<size_t>(
          std::min<uint64_t>(left_, std::min(in.size() - step.consumed, out.size() - step.produced)));
      if (n == 0) break;  // `out` is full
      std::memcpy(out.data() + step.produced, in.data() + step.consumed, n);
      step.consumed += n;
      step.produced += n;
      skip(n);
    } else {
      TRY(frame(in[step.consumed]));
      ++step.consumed;
    }
  }
  return step;
}

// One byte of framing. Sizes have at most 15 digits, so that no sum of ours overflows.
Result<void> BodyDecoder::frame(char c) {
  switch (state_) {
    case State::size:
      if (int digit = hex_digit(c); digit >= 0) {
        if (++digits_ > 15) return malformed("a chunk size has more than 15 digits");
        left_ = left_ * 16 + static_cast<uint64_t>(digit);
      } else if (digits_ == 0) {
        return malformed("a chunk does not start with its size in hexadecimal digits");
      } else if (c == '\r') {
        state_ = State::size_lf;
      } else if (c == ';') {
        state_ = State::extension;
      } else {
        return malformed("a chunk size is followed by something else than CRLF");
      }
      return {};
    case State::extension:
      if (c == '\r') {
        state_ = State::size_lf;
        return {};
      }
      if (!is_field_value({&c, 1})) return malformed("a control character in a chunk extension");
      if (++extension_bytes_ > kMaxExtensionBytes) return malformed("more than 8 KiB of chunk extensions");
      return {};
    case State::size_lf:
      if (c != '\n') return malformed("CR without LF behind a chunk size");
      digits_ = 0;
      state_ = left_ ? State::payload : State::trailer;
      return {};
    case State::payload_cr:
      if (c != '\r') return malformed("a chunk is longer than its size");
      state_ = State::payload_lf;
      return {};
    case State::payload_lf:
      if (c != '\n') return malformed("CR without LF behind a chunk");
      state_ = State::size;
      return {};
    case State::trailer:
      if (++trailer_bytes_ > kMaxTrailerBytes) return malformed("more than 8 KiB of trailers");
      if (c == '\n') return end_trailer_line();
      trailer_.push_back(c);
      return {};
    case State::payload:
    case State::done:
      break;
  }
  return fail(Code::internal, "chunked body: bad state");
}

// Trailers are checked like header fields and then dropped: nobody here has use for them, and a field that
// comes after the decisions it could change is a danger.
Result<void> BodyDecoder::end_trailer_line() {
  if (!trailer_.ends_with('\r')) return malformed("a trailer line must end with CRLF");
  trailer_.pop_back();
  if (trailer_.empty()) {
    state_ = State::done;
    return {};
  }
  std::string_view name, value;
  if (auto rejected = split_field(trailer_, name, value))
    return malformed("trailer: " + std::string(rejected->reason));
  trailer_.clear();
  return {};
}

Result<void> BodyDecoder::end_of_stream() {
  if (kind_ == Kind::until_close) state_ = State::done;
  if (done()) return {};
  return fail(Code::unavailable, "the connection ended before the body did");
}

}  // namespace osb::http
