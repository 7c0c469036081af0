#include "http/response_writer.h"

#include <sys/socket.h>

#include <array>

#include "base/strings.h"
#include "http/head_parse.h"

namespace osb::http {
namespace {

bool has_no_body(int status) { return status < 200 || status == 204 || status == 304; }

size_t total(io::Pieces pieces) {
  size_t sum = 0;
  for (std::string_view piece : pieces) sum += piece.size();
  return sum;
}

}  // namespace

void StreamWriter::begin(Begin request) {
  request_ = request;
  state_ = State::idle;
  when_closed_ = nullptr;
  always_.clear();
  head_pending_ = false;
}

void StreamWriter::always(std::string name, std::string value) {
  for (HeaderField& field : always_) {
    if (!iequals(field.name, name)) continue;
    field.value = std::move(value);
    return;
  }
  always_.push_back({std::move(name), std::move(value)});
}

// Decides how the body is framed and composes the head; sends nothing yet.
Result<void> StreamWriter::open(int status, const Headers& headers, std::optional<uint64_t> length) {
  if (state_ != State::idle) return fail(Code::wrong_state, "the answer has been started already");
  if (status < 100 || status > 999) return fail(Code::internal, "the status must have three digits");
  bool bodiless = has_no_body(status);
  using Kind = BodyFraming::Kind;
  if (bodiless) {
    framing_ = {};
  } else if (length) {
    framing_ = {Kind::length, *length};
  } else if (request_.http_1_1) {
    framing_ = {Kind::chunked};
  } else {
    framing_ = {Kind::until_close};
    request_.close = true;
  }
  if (list_contains(headers.get("connection"), "close")) request_.close = true;
  if (body_.held_back() || wire_.read_broken()) request_.close = true;
  TRY(format_response_head({status, headers, always_, framing_, request_.close}, head_));
  mute_ = bodiless || request_.head_only;
  left_ = framing_.length;
  head_pending_ = true;
  state_ = State::open;
  body_.answer_started();
  return {};
}

// What write_now did not send at once. Also lets others run when writes have succeeded too often in a row.
Task<Result<void>> StreamWriter::finish_write(io::Pieces pieces, size_t sent) {
  auto written = co_await wire_.write_rest(pieces, sent);
  if (!written && state_ != State::aborted) state_ = State::aborted;
  co_return written;
}

Task<Result<void>> StreamWriter::send(int status, Headers headers, std::string body) {
  // A body that will not be drained ends the connection, and the client should know before it sends more. A
  // streamed answer does not decide that: its handler may go on reading.
  // Nor is a refused client waited for: its body is here already, or the connection ends.
  bool refusal = status >= 400;
  if (refusal && !body_.held_back()) body_.skip_received();
  if (!body_.done() && (refusal || body_.remaining().value_or(0) > kMaxDrainBytes)) request_.close = true;
  CO_TRY(open(status, headers, body.size()));
  std::array<std::string_view, 2> pieces{head_, mute_ ? std::string_view() : std::string_view(body)};
  head_pending_ = false;
  auto sent = wire_.write_now(pieces);
  if (!sent) {
    state_ = State::aborted;
    co_return std::unexpected(std::move(sent.error()));
  }
  if (*sent != total(pieces) || wire_.must_yield()) CO_TRY(co_await finish_write(pieces, *sent));
  state_ = State::finished;
  co_return Result<void>{};
}

Task<Result<void>> StreamWriter::start(int status, Headers headers, std::optional<uint64_t> length) {
  co_return open(status, headers, length);
}

Result<void> StreamWriter::check_open() const {
  if (state_ == State::open) return {};
  if (state_ == State::aborted) return fail(Code::unavailable, "the connection was given up");
  return fail(Code::wrong_state,
              state_ == State::idle ? "the answer has not been started" : "the answer has ended");
}

Result<void> StreamWriter::count(size_t size) {
  if (size > left_) {
    abort();
    return fail(Code::internal, "the body is longer than was declared");
  }
  left_ -= size;
  return {};
}

Task<Result<void>> StreamWriter::write(std::string_view bytes) {
  CO_TRY(check_open());
  bool chunked = framing_.kind == BodyFraming::Kind::chunked && !mute_ && !bytes.empty();
  if (framing_.kind == BodyFraming::Kind::length && !mute_) CO_TRY(count(bytes.size()));
  std::array<std::string_view, 4> pieces;
  if (head_pending_) pieces[0] = head_;
  head_pending_ = false;
  if (!mute_) pieces[2] = bytes;
  if (chunked) {
    pieces[1] = chunk_prefix(bytes.size(), prefix_);
    pieces[3] = "\r\n";
  }
  size_t size = total(pieces);
  if (size == 0) co_return Result<void>{};
  auto sent = wire_.write_now(pieces);
  if (!sent) {
    state_ = State::aborted;
    co_return std::unexpected(std::move(sent.error()));
  }
  if (*sent != size || wire_.must_yield()) CO_TRY(co_await finish_write(pieces, *sent));
  co_return Result<void>{};
}

Task<Result<void>> StreamWriter::write_pipe(int pipe, size_t size) {
  CO_TRY(check_open());
  if (framing_.kind != BodyFraming::Kind::length || mute_)
    co_return fail(Code::wrong_state, "only a body with a declared length comes from a pipe");
  CO_TRY(count(size));
  if (head_pending_) CO_TRY(co_await write(""));
  if (size == 0) co_return Result<void>{};
  auto sent = wire_.splice_now(pipe, size);
  if (sent && *sent == size && !wire_.must_yield()) co_return Result<void>{};
  Result<void> rest;
  if (sent) {
    rest = co_await wire_.splice_rest(pipe, size - *sent);
  } else {
    rest = std::unexpected(std::move(sent.error()));
  }
  if (!rest) state_ = State::aborted;
  co_return rest;
}

Task<Result<void>> StreamWriter::finish() {
  CO_TRY(check_open());
  if (framing_.kind == BodyFraming::Kind::length && !mute_ && left_ > 0) {
    abort();
    co_return fail(Code::internal, "the body is shorter than was declared");
  }
  std::array<std::string_view, 2> pieces;
  if (head_pending_) pieces[0] = head_;
  head_pending_ = false;
  if (framing_.kind == BodyFraming::Kind::chunked && !mute_) pieces[1] = "0\r\n\r\n";
  if (size_t size = total(pieces)) {
    auto sent = wire_.write_now(pieces);
    if (!sent) {
      state_ = State::aborted;
      co_return std::unexpected(std::move(sent.error()));
    }
    if (*sent != size) CO_TRY(co_await finish_write(pieces, *sent));
  }
  state_ = State::finished;
  co_return Result<void>{};
}

void StreamWriter::abort() {
  if (state_ == State::taken || state_ == State::finished) return;
  // A body that ends with the connection looks complete after an orderly close: reset instead.
  if (state_ == State::open && framing_.kind == BodyFraming::Kind::until_close) {
    linger reset{1, 0};
    ::setsockopt(wire_.socket().native_handle(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  state_ = State::aborted;
  wire_.break_off();
}

std::pair<io::Socket*, std::string> StreamWriter::take_over() {
  state_ = State::taken;
  std::string received(wire_.in().view());
  wire_.in().consume(received.size());
  return {&wire_.socket(), std::move(received)};
}

void StreamWriter::sweep() {
  if (!when_closed_ || !io::peer_closed(wire_.socket())) return;
  std::exchange(when_closed_, nullptr)();
}

Task<> StreamWriter::wait_closed() { co_await io::wait_peer_closed(wire_.socket()); }

}  // namespace osb::http
