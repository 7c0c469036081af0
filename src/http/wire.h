#pragma once

// The byte side of one HTTP connection, for server and client alike: the socket, what was received and not
// yet used, writes that usually cost one system call and no suspension, and time limits.

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "io/socket.h"
#include "io/stopped_time.h"

namespace osb::http {

using io::Task;
using TimePoint = std::chrono::steady_clock::time_point;

// Received bytes. Grows on demand from nothing; the owner bounds it.
class InputBuffer {
 public:
  std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  void consume(size_t count);
  // Room for at least one byte, for all of a buffer of `capacity` bytes when it is empty.
  std::span<char> prepare(size_t capacity);
  void commit(size_t count) { end_ += count; }
  void shrink(size_t capacity);  // gives memory beyond that back, when empty

 private:
  std::unique_ptr<char[]> data_;
  size_t begin_ = 0, end_ = 0, capacity_ = 0;
};

// A clock that one sweep per server advances: setting a deadline costs a store, not a timer.
struct Ticks {
  TimePoint now{};
  io::Duration interval{};
};

class Wire {
 public:
  static constexpr size_t kHeadBuffer = 4 * 1024;
  static constexpr size_t kBodyBuffer = 16 * 1024;

  // With `ticks` the owner calls sweep() at every tick; without, waiting writes get a timer each.
  Wire(io::Socket socket, const Ticks* ticks) : socket_(std::move(socket)), ticks_(ticks) {}

  io::Socket& socket() { return socket_; }
  InputBuffer& in() { return in_; }

  // More received bytes, into in() or straight to where they belong; 0 at the end of the stream.
  Task<Result<size_t>> fill(size_t capacity, TimePoint deadline = TimePoint::max());
  Task<Result<size_t>> read(std::span<char> into, TimePoint deadline = TimePoint::max());
  // The same into a pipe, which must have room.
  Task<Result<size_t>> move(int pipe, size_t limit, TimePoint deadline);
  // The same without waiting: 0 when nothing is here, or never will be.
  size_t fill_now(size_t capacity);
  bool ended() const { return ended_; }  // the other side has sent its last byte
  TimePoint now() const { return ticks_ ? ticks_->now : TimePoint(); }
  // For the above; never without ticks.
  TimePoint deadline_after(io::Duration limit) const;

  // All of it, or an error after which the connection is broken. The pieces must live until it returns.
  // write_now gives what could be sent at once; when that is not all, the caller awaits write_rest.
  Result<size_t> write_now(io::Pieces pieces);
  Task<Result<void>> write_rest(io::Pieces pieces, size_t sent);
  // The same with bytes that wait in a pipe, which are moved and not copied.
  Result<size_t> splice_now(int pipe, size_t size);
  Task<Result<void>> splice_rest(int pipe, size_t size);
  bool must_yield() const { return streak_ >= kMaxStreak; }
  void set_write_limit(io::Duration limit) { write_limit_ = limit; }
  void set_stopped_time(io::StoppedTime stopped) { stopped_ = std::move(stopped); }

  // Ends what has waited beyond its deadline with Code::timeout.
  void sweep(TimePoint now);
  // The directions break for good, and alone: an upstream that stopped reading may have answered before, and
  // a client whose body is malformed can still be told so.
  void stop_reading();
  void break_off();
  bool read_broken() const { return read_broken_; }
  bool write_broken() const { return write_broken_; }

 private:
  // Writes that succeed at once never let anyone else run: after this many in a row they do.
  static constexpr int kMaxStreak = 32;

  std::optional<Result<size_t>> cannot_read() const;  // and what a read gives then
  Result<size_t> note_read(const boost::system::error_code& error, size_t got);
  Task<Result<void>> limit_write(Task<Result<void>> write);
  Result<void> check_writable() const;
  void cancel();

  io::Socket socket_;
  InputBuffer in_;
  const Ticks* ticks_;
  TimePoint read_deadline_ = TimePoint::max();
  TimePoint write_deadline_ = TimePoint::max();
  io::Duration write_limit_ = std::chrono::seconds(300);
  io::StoppedTime stopped_;
  int streak_ = 0;
  bool ended_ = false;
  bool read_expired_ = false;
  bool write_expired_ = false;
  bool read_broken_ = false;
  bool write_broken_ = false;
};

}  // namespace osb::http
