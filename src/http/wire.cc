#include "http/wire.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <cstring>

#include "io/running_time.h"
#include "io/stream_end.h"

namespace osb::http {

void InputBuffer::consume(size_t count) {
  begin_ += count;
  if (begin_ == end_) begin_ = end_ = 0;
}

std::span<char> InputBuffer::prepare(size_t capacity) {
  if (begin_ > 0 && end_ == capacity_) {
    std::memmove(data_.get(), data_.get() + begin_, size());
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == capacity_ || (empty() && capacity_ < capacity)) {
    size_t grown = std::max(capacity, capacity_ * 2);
    auto larger = std::make_unique_for_overwrite<char[]>(grown);
    if (!empty()) std::memcpy(larger.get(), data_.get() + begin_, size());
    end_ -= begin_;
    begin_ = 0;
    data_ = std::move(larger);
    capacity_ = grown;
  }
  return {data_.get() + end_, capacity_ - end_};
}

void InputBuffer::shrink(size_t capacity) {
  if (!empty() || capacity_ <= capacity) return;
  data_.reset();
  begin_ = end_ = capacity_ = 0;
}

namespace {

constexpr auto kQuiet = io::asio::as_tuple(io::asio::deferred);

Error explain(bool expired, Error error) {
  if (expired) return {Code::timeout, 0, "the other side was silent for too long"};
  return error;
}

}  // namespace

TimePoint Wire::deadline_after(io::Duration limit) const {
  // `now` may be one interval old, and a limit must never end early.
  return ticks_ ? ticks_->now + limit + ticks_->interval : TimePoint::max();
}

std::optional<Result<size_t>> Wire::cannot_read() const {
  if (read_broken_)
    return std::unexpected(explain(read_expired_, {Code::unavailable, 0, "read: the connection is broken"}));
  // The reactor reports the end of a stream once: a second read would wait for ever.
  if (ended_) return 0;
  return std::nullopt;
}

Result<size_t> Wire::note_read(const boost::system::error_code& error, size_t got) {
  read_deadline_ = TimePoint::max();
  ended_ = error == io::asio::error::eof;
  if (!error) return got;
  auto end =
      ended_ ? io::end_of_stream(socket_) : Result<size_t>(std::unexpected(io::to_error("read", error)));
  if (end) return end;
  ended_ = false;
  Error why = std::move(end.error());
  // A read that its owner gave up took nothing from the stream.
  if (why.code != Code::cancelled) read_broken_ = true;
  return std::unexpected(explain(read_expired_, std::move(why)));
}

// Both are one coroutine each: whoever waits for a small message pays for every one between it and the
// socket.
Task<Result<size_t>> Wire::read(std::span<char> into, TimePoint deadline) {
  if (auto at_once = cannot_read()) co_return std::move(*at_once);
  streak_ = 0;
  read_deadline_ = deadline;
  auto [error, got] = co_await socket_.async_read_some(io::asio::buffer(into.data(), into.size()), kQuiet);
  co_return note_read(error, got);
}

Task<Result<size_t>> Wire::fill(size_t capacity, TimePoint deadline) {
  if (auto at_once = cannot_read()) co_return std::move(*at_once);
  streak_ = 0;
  read_deadline_ = deadline;
  std::span<char> room = in_.prepare(capacity);
  auto [error, got] = co_await socket_.async_read_some(io::asio::buffer(room.data(), room.size()), kQuiet);
  auto noted = note_read(error, got);
  if (noted) in_.commit(*noted);
  co_return noted;
}

Task<Result<size_t>> Wire::move(int pipe, size_t limit, TimePoint deadline) {
  if (auto at_once = cannot_read()) co_return std::move(*at_once);
  streak_ = 0;
  read_deadline_ = deadline;
  while (true) {
    ssize_t got = ::splice(socket_.native_handle(), nullptr, pipe, nullptr, limit, SPLICE_F_NONBLOCK);
    if (got > 0) co_return note_read({}, static_cast<size_t>(got));
    if (got == 0) co_return note_read(io::asio::error::eof, 0);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return note_read({errno, boost::system::system_category()}, 0);
    auto [error] = co_await socket_.async_wait(io::Socket::wait_read, kQuiet);
    if (error) co_return note_read(error, 0);
  }
}

size_t Wire::fill_now(size_t capacity) {
  if (read_broken_ || ended_) return 0;
  std::span<char> room = in_.prepare(capacity);
  ssize_t got = ::recv(socket_.native_handle(), room.data(), room.size(), MSG_DONTWAIT);
  if (got == 0) (io::end_of_stream(socket_) ? ended_ : read_broken_) = true;
  if (got <= 0) return 0;
  in_.commit(static_cast<size_t>(got));
  return static_cast<size_t>(got);
}

Result<void> Wire::check_writable() const {
  if (!write_broken_) return {};
  return std::unexpected(explain(write_expired_, {Code::unavailable, 0, "write: the connection is broken"}));
}

Result<size_t> Wire::write_now(io::Pieces pieces) {
  TRY(check_writable());
  auto sent = io::try_write(socket_, pieces);
  if (!sent) write_broken_ = true;
  ++streak_;
  return sent;
}

Task<Result<void>> Wire::write_rest(io::Pieces pieces, size_t sent) {
  streak_ = 0;
  size_t total = 0;
  for (std::string_view piece : pieces) total += piece.size();
  if (sent == total) {
    co_await io::yield();
    co_return Result<void>{};
  }
  co_return co_await limit_write(io::write_all(socket_, pieces, sent));
}

Result<size_t> Wire::splice_now(int pipe, size_t size) {
  TRY(check_writable());
  auto sent = io::try_splice(pipe, socket_, size);
  if (!sent) write_broken_ = true;
  ++streak_;
  return sent;
}

Task<Result<void>> Wire::splice_rest(int pipe, size_t size) {
  streak_ = 0;
  if (size == 0) {
    co_await io::yield();
    co_return Result<void>{};
  }
  co_return co_await limit_write(io::splice_all(pipe, socket_, size));
}

Task<Result<void>> Wire::limit_write(Task<Result<void>> write) {
  Result<void> written;
  if (ticks_) {
    write_deadline_ = deadline_after(write_limit_);
    written = co_await std::move(write);
    write_deadline_ = TimePoint::max();
  } else if (stopped_) {
    written = co_await io::with_deadline_for(write_limit_, "write", stopped_, std::move(write));
  } else {
    written = co_await io::with_deadline(write_limit_, "write", std::move(write));
  }
  if (written) co_return written;
  write_broken_ = true;
  co_return std::unexpected(explain(write_expired_, std::move(written.error())));
}

void Wire::sweep(TimePoint now) {
  if (write_deadline_ < now) {
    write_expired_ = true;
    break_off();
    cancel();
  } else if (read_deadline_ < now) {
    read_expired_ = true;
    stop_reading();
  }
}

void Wire::stop_reading() {
  read_broken_ = true;
  // Cancelling ends both directions; one that waits for a client which neither sends nor takes anything is no
  // loss.
  if (write_deadline_ != TimePoint::max()) write_broken_ = true;
  cancel();
}

void Wire::break_off() { read_broken_ = write_broken_ = true; }

void Wire::cancel() {
  read_deadline_ = write_deadline_ = TimePoint::max();
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

}  // namespace osb::http
