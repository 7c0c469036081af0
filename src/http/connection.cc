#include "http/connection.h"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>

#include "base/log.h"
#include "http/client_presence.h"
#include "http/head_check.h"

namespace osb::http {
namespace {

// Messages of ours are plain ASCII without quotes, so that no JSON printer is needed here.
std::string error_body(std::string_view code, std::string_view message) {
  std::string body = R"({"code":")";
  body.append(code).append(R"(","message":")").append(message).append(R"("})");
  return body;
}

BodyDecoder decoder_for(const Framing& framing) {
  if (framing.chunked) return BodyDecoder::chunked();
  return BodyDecoder::with_length(framing.length.value_or(0));
}

// Enough for what is on its way when a client that sends a large body is refused.
constexpr size_t kMaxLingerBytes = 4 << 20;

Task<Result<void>> discard(io::Socket& socket) {
  auto scratch = std::make_unique_for_overwrite<char[]>(Wire::kBodyBuffer);
  for (size_t total = 0; total < kMaxLingerBytes;) {
    size_t got = CO_TRY(co_await io::read_some(socket, {scratch.get(), Wire::kBodyBuffer}));
    if (got == 0) break;
    total += got;
  }
  co_return Result<void>{};
}

}  // namespace

Connection::Connection(io::Socket socket, const Handler& handler, const ServerLimits& limits,
                       const Ticks& ticks)
    : handler_(handler),
      limits_(limits),
      ticks_(ticks),
      wire_(std::move(socket), &ticks),
      body_(wire_, {limits.body_timeout, limits.body_credit, limits.body_rate}),
      writer_(wire_, body_),
      peer_(io::peer_address(wire_.socket())),
      since_(ticks.now) {
  wire_.set_write_limit(limits.write_timeout);
}

void Connection::sweep(TimePoint now) {
  wire_.sweep(now);
  writer_.sweep();
}

void Connection::stop() {
  stopping_ = true;
  writer_.close_after();
  if (use_ == Use::idle) wire_.stop_reading();
}

void Connection::evict() {
  stopping_ = true;
  wire_.stop_reading();
  wire_.break_off();  // nothing that it could be waited for
}

void Connection::set_use(Use use) {
  use_ = use;
  since_ = ticks_.now;
}

Task<bool> Connection::gone() { return client_gone(wire_, request_.head.http_1_1); }

Task<> Connection::run() {
  while (!stopping_) {
    if (co_await read_request() == Next::end) break;
    co_await call_handler();
    if (!settled() && !co_await settle()) break;
  }
  if (!clean_ && !wire_.write_broken()) co_await linger();
}

Task<Connection::Next> Connection::read_request() {
  InputBuffer& in = wire_.in();
  size_t scanned = 0;
  bool head_begun = false;
  TimePoint deadline;
  clean_ = true;
  while (true) {
    HeadScan scan = find_head_end(in.view(), scanned);
    if (scan.state == HeadScan::State::malformed) {
      co_await refuse(400, scan.reason);
      co_return Next::end;
    }
    if (scan.state == HeadScan::State::complete && scan.size <= kMaxHeadBytes) {
      set_use(Use::busy);
      Framing framing;
      request_ = {};
      request_.body = &body_;
      request_.sender = this;
      request_.peer = peer_;
      auto rejected = parse_request_head(in.view().substr(0, scan.size), request_.head, framing);
      if (rejected) {
        co_await refuse(rejected->status, rejected->reason);
        co_return Next::end;
      }
      in.consume(scan.size);
      body_.begin(decoder_for(framing), framing.expect_continue);
      writer_.begin({request_.head.method == "HEAD", request_.head.http_1_1, framing.close || stopping_});
      co_return Next::request;
    }
    if (in.size() >= kMaxHeadBytes) {
      bool first_line = in.view().find('\n') == std::string_view::npos;
      co_await refuse(first_line ? 414 : 431,
                      first_line ? "the request target is too long" : "the head is larger than 64 KiB");
      co_return Next::end;
    }
    if (in.empty()) {
      in.shrink(Wire::kHeadBuffer);
      set_use(Use::idle);
      deadline = wire_.deadline_after(limits_.idle_timeout);
    } else if (!head_begun) {
      head_begun = true;
      set_use(Use::head);
      deadline = wire_.deadline_after(limits_.head_timeout);
    }
    if (stopping_) co_return Next::end;
    auto got = co_await wire_.fill(Wire::kHeadBuffer, deadline);
    if (got && *got > 0) continue;
    co_return Next::end;  // closed, reset, or silent for too long
  }
}

// Nothing of ours throws, but a handler calls libraries that may: such a bug costs one request, not the
// process.
Task<> Connection::call_handler() {
  std::string what;
  try {
    co_await handler_(request_, writer_);
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "unknown exception";
  }
  // The handler may have switched this off for its own clean-up. From here on a cancelled connection ends at
  // its next co_await, whatever the handler did with the exception.
  co_await io::asio::this_coro::throw_if_cancelled(true);
  auto state = co_await io::asio::this_coro::cancellation_state;
  if (what.empty() || state.cancelled() != io::asio::cancellation_type::none) co_return;
  log::error("exception in a request handler",
             {{"what", what}, {"method", request_.head.method}, {"target", request_.head.target}});
}

bool Connection::settled() const {
  return writer_.finished() && !writer_.closes() && !stopping_ && !wire_.write_broken() &&
         !wire_.read_broken() && body_.done();
}

Task<bool> Connection::settle() {
  if (writer_.taken_over() || wire_.write_broken()) co_return false;
  if (!writer_.started()) {
    auto sent = co_await writer_.send(
        500, {{"Content-Type", "application/json"}},
        error_body("HTTP::NO_ANSWER", "the request was not answered because of an internal error"));
    if (!sent) co_return false;
  }
  if (!writer_.finished()) {
    writer_.abort();
    co_return false;
  }
  if (writer_.closes() || stopping_ || wire_.read_broken()) {
    clean_ = body_.done() && wire_.in().empty();
    co_return false;
  }
  co_return co_await drain_body();
}

Task<bool> Connection::drain_body() {
  if (body_.done()) co_return true;
  set_use(Use::answered);
  auto drained = co_await io::with_deadline(limits_.linger, "drain", discard_body());
  clean_ = drained && *drained;
  co_return clean_;
}

// False when there is more than is worth a connection.
Task<Result<bool>> Connection::discard_body() {
  auto scratch = std::make_unique_for_overwrite<char[]>(Wire::kBodyBuffer);
  for (uint64_t drained = 0; drained <= StreamWriter::kMaxDrainBytes;) {
    size_t got = CO_TRY(co_await body_.read_some({scratch.get(), Wire::kBodyBuffer}));
    if (got == 0) co_return true;
    drained += got;
  }
  co_return false;
}

Task<> Connection::refuse(int status, std::string_view reason) {
  set_use(Use::busy);
  clean_ = false;
  body_.begin({}, false);
  writer_.begin({.close = true});
  auto ignored = co_await writer_.send(status, {{"Content-Type", "application/json"}},
                                       error_body("HTTP::BAD_REQUEST", reason));
  if (!ignored) wire_.break_off();
}

// Closing a socket with unread bytes resets the connection and may destroy the answer on its way. So the
// answer's end is announced and the rest thrown away for a short while.
Task<> Connection::linger() {
  boost::system::error_code error;
  wire_.socket().shutdown(io::Socket::shutdown_send, error);
  if (error || wire_.ended()) co_return;
  set_use(Use::answered);
  std::ignore = co_await io::with_deadline(limits_.linger, "linger", discard(wire_.socket()));
}

}  // namespace osb::http
