#include "io/stream.h"

#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>

#include "io/stream_end.h"
#include "io/stream_pump.h"

namespace osb::io {
namespace {

constexpr size_t kBuffer = 16 * 1024;
constexpr auto kPatience = std::chrono::seconds(60);

// Whatever ends it, its reader finds a break, unless the other side has told its end.
struct Joint {
  Joint(const Executor& executor, std::unique_ptr<ForeignStream> foreign_, Socket socket_)
      : foreign(std::move(foreign_)), socket(std::move(socket_)), both_ended(executor) {}
  ~Joint() {
    if (!end_is_told) mark_broken(socket);
  }
  Joint(const Joint&) = delete;
  // A direction that came to its end lets the other one go on.
  Task<> ended() {
    if (++ends == 2) both_ended.set();
    co_await both_ended.wait();
  }
  std::unique_ptr<ForeignStream> foreign;
  Socket socket;
  bool end_is_told = false;
  uint64_t moved_out = 0;  // pieces
  int ends = 0;
  Event both_ended;
};

// Each returns when the connection is over, which cancels the others.
Task<> move_in(std::shared_ptr<Joint> joint) {
  auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  while (true) {
    auto got = co_await joint->foreign->read_some({buffer.get(), kBuffer});
    if (!got) co_return;
    if (*got == 0) break;
    if (!co_await write_all(joint->socket, std::string_view(buffer.get(), *got))) co_return;
  }
  joint->end_is_told = true;
  boost::system::error_code ignored;
  joint->socket.shutdown(Socket::shutdown_send, ignored);
  co_await joint->ended();
}

// The other side may be through in the middle of what it is sent, and its last words are on their way: they
// are waited for, and so is the news that there are none.
Task<> move_out(std::shared_ptr<Joint> joint) {
  auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  bool heard = true;
  while (true) {
    auto got = co_await read_some(joint->socket, {buffer.get(), kBuffer});
    if (!got) co_return;
    if (*got == 0) break;
    if (heard) heard = (co_await joint->foreign->write_all(std::string_view(buffer.get(), *got))).has_value();
    ++joint->moved_out;
  }
  joint->foreign->shutdown_send();
  ++joint->moved_out;
  co_await joint->ended();
}

// One that has closed, and not only said all, hears nothing any more. What it has said goes out for as long
// as somebody takes it.
Task<> abandoned(std::shared_ptr<Joint> joint, Duration patience) {
  (void)co_await joint->socket.async_wait(Socket::wait_error, asio::as_tuple(asio::deferred));
  uint64_t seen = 0;
  do {
    seen = joint->moved_out;
    co_await sleep_for(patience);
  } while (seen != joint->moved_out);
}

Task<> both_ways(std::shared_ptr<Joint> joint) { co_await race(move_in(joint), move_out(joint)); }

}  // namespace

Task<> pump(Executor executor, std::unique_ptr<ForeignStream> foreign, Socket half, Duration patience) {
  auto joint = std::make_shared<Joint>(executor, std::move(foreign), std::move(half));
  co_await race(both_ways(joint), abandoned(joint, patience));
}

Result<Socket> to_socket(Stream stream, const Executor& executor, TaskGroup& pumps) {
  if (stream.socket_) return std::move(*stream.socket_);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return fail_errno("socketpair");
  Fd ours(pair[0]), theirs(pair[1]);
  Socket inner = TRY(adopt(executor, std::move(ours)));
  Socket outer = TRY(adopt(executor, std::move(theirs)));
  pumps.spawn(pump(executor, std::move(stream.foreign_), std::move(inner), kPatience));
  return outer;
}

}  // namespace osb::io
