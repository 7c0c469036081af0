#include "io/stream.h"

#include <sys/socket.h>

namespace osb::io {
namespace {

constexpr size_t kBuffer = 16 * 1024;

struct Joint {
  Joint(const Executor& executor, std::unique_ptr<ForeignStream> foreign_, Socket socket_)
      : foreign(std::move(foreign_)), socket(std::move(socket_)), both_ended(executor) {}
  // A direction that came to its end lets the other one go on.
  Task<> ended() {
    if (++ends == 2) both_ended.set();
    co_await both_ended.wait();
  }
  std::unique_ptr<ForeignStream> foreign;
  Socket socket;
  int ends = 0;
  Event both_ended;
};

// Both return when the connection is over, which cancels the other.
Task<> move_in(std::shared_ptr<Joint> joint) {
  auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  while (true) {
    auto got = co_await joint->foreign->read_some({buffer.get(), kBuffer});
    if (!got) co_return;
    if (*got == 0) break;
    if (!co_await write_all(joint->socket, std::string_view(buffer.get(), *got))) co_return;
  }
  boost::system::error_code ignored;
  joint->socket.shutdown(Socket::shutdown_send, ignored);
  co_await joint->ended();
}

Task<> move_out(std::shared_ptr<Joint> joint) {
  auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  while (true) {
    auto got = co_await read_some(joint->socket, {buffer.get(), kBuffer});
    if (!got) co_return;
    if (*got == 0) break;
    if (!co_await joint->foreign->write_all(std::string_view(buffer.get(), *got))) co_return;
  }
  joint->foreign->shutdown_send();
  co_await joint->ended();
}

Task<> pump(std::shared_ptr<Joint> joint) { co_await race(move_in(joint), move_out(joint)); }

}  // namespace

Result<Socket> to_socket(Stream stream, const Executor& executor, TaskGroup& pumps) {
  if (stream.socket_) return std::move(*stream.socket_);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return fail_errno("socketpair");
  Fd ours(pair[0]), theirs(pair[1]);
  Socket inner = TRY(adopt(executor, std::move(ours)));
  Socket outer = TRY(adopt(executor, std::move(theirs)));
  pumps.spawn(pump(std::make_shared<Joint>(executor, std::move(stream.foreign_), std::move(inner))));
  return outer;
}

}  // namespace osb::io
