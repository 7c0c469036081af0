#include "egress/relay.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>

#include "io/pipe.h"

namespace osb::egress {
namespace {

using io::Socket;
using io::Task;

constexpr auto kQuiet = io::asio::as_tuple(io::asio::deferred);
constexpr size_t kPiece = 64 * 1024;
// A pipe costs two descriptors and two system calls: worth it for what is longer than that.
constexpr uint64_t kStream = 256 * 1024;

enum class End { closed, broken };

Task<bool> readable(Socket& socket) {
  auto [error] = co_await socket.async_wait(Socket::wait_read, kQuiet);
  co_return !error;
}

Task<End> move_all(Socket& from, Socket& to, uint64_t& count, io::Pipe pipe) {
  while (true) {
    ssize_t n = ::splice(from.native_handle(), nullptr, pipe.write.get(), nullptr, io::Pipe::kCapacity,
                         SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n == 0) co_return End::closed;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) co_return End::broken;
    if (n < 0) {
      if (!co_await readable(from)) co_return End::broken;
      continue;
    }
    count += static_cast<uint64_t>(n);
    auto moved = co_await io::splice_all(pipe.read.get(), to, static_cast<size_t>(n));
    if (!moved) co_return End::broken;
  }
}

void note_begin(Flow& flow, std::string_view piece) {
  if (flow.answer_begin.size() == kAnswerBegin) return;
  flow.answer_begin.append(piece.substr(0, kAnswerBegin - flow.answer_begin.size()));
  if (flow.answer_begin.size() == kAnswerBegin) flow.answered.set();
}

// `back`: the flow, when this is what its server says.
Task<End> copy_all(Socket& from, Socket& to, uint64_t& count, Flow* back) {
  // Of the thread: nothing is kept in it while anybody waits.
  static thread_local char buffer[kPiece];
  for (int streak = 0;;) {
    ssize_t n = ::recv(from.native_handle(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n == 0) co_return End::closed;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) co_return End::broken;
    if (n < 0) {
      streak = 0;
      if (!co_await readable(from)) co_return End::broken;
      continue;
    }
    count += static_cast<uint64_t>(n);
    std::string_view piece(buffer, static_cast<size_t>(n));
    if (back != nullptr) note_begin(*back, piece);
    auto taken = io::try_write(to, std::array{piece});
    if (!taken) co_return End::broken;
    if (*taken < piece.size()) {
      std::string rest(piece.substr(*taken));
      if (!co_await io::write_all(to, rest)) co_return End::broken;
    }
    if (count >= kStream) {
      if (auto pipe = io::Pipe::create()) co_return co_await move_all(from, to, count, std::move(*pipe));
    }
    // One that is always ready must not keep the others waiting.
    if (++streak % 16 == 0) co_await io::yield();
  }
}

}  // namespace

void reset(Socket& socket) {
  struct linger none{1, 0};
  ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  boost::system::error_code ignored;
  socket.close(ignored);
}

void Flow::cut() {
  if (client.is_open() && !client_refused_) reset(client);
  if (server.is_open()) reset(server);
}

Task<> end_gently(Socket& socket) {
  ::shutdown(socket.native_handle(), SHUT_WR);
  char rest[4096];
  // With bytes unread the kernel would send a reset, which overtakes what was just said.
  for (int i = 0; i < 64; ++i) {
    auto n = co_await io::with_deadline(std::chrono::seconds(1), "the client", io::read_some(socket, rest));
    if (!n || *n == 0) break;
  }
}

Task<> carry_out(FlowPtr flow) {
  End end = co_await copy_all(flow->client, flow->server, flow->sent, nullptr);
  if (end == End::broken) co_return flow->cut();
  ::shutdown(flow->server.native_handle(), SHUT_WR);
}

Task<> carry_back(FlowPtr flow) {
  End end = co_await copy_all(flow->server, flow->client, flow->received, flow.get());
  if (end == End::closed && !flow->last_words.empty())
    (void)io::try_write(flow->client, std::array{std::string_view(flow->last_words)});
  flow->answered.set();
  flow->back_ended.set();
  if (end == End::broken) co_return flow->cut();
  ::shutdown(flow->client.native_handle(), SHUT_WR);
}

}  // namespace osb::egress
