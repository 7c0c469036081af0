#include "cli/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/event_stream.h"
#include "cli/kept_flags.h"
#include "cli/scratch_sandbox.h"
#include "json/decode.h"

namespace osb::cli {
namespace {

using Steady = std::chrono::steady_clock;

// First bytes of binary messages (execd's protocol of terminals, with pipes).
constexpr char kInput = 0, kOutput = 1, kErrors = 2, kReplay = 3;
constexpr size_t kReplayHead = 9;
constexpr size_t kPiece = 64 * 1024;
constexpr size_t kWindow =
    1 << 20;  // bytes under way that the program has not read; the daemon holds four times that

struct Stream {
  http::WebSocket& socket;
  Signals& signals;
  io::Event room;
  size_t under_way = 0;
  std::optional<int> status = {};
  std::string refusal = {};  // why the program did not start
  std::optional<Error> problem = {};
};

Result<void> on_text(Stream& stream, std::string_view text) {
  json::bj::value value = TRY(json::parse(text));
  json::Issues ignored;
  auto field = json::Field::root(value, ignored, "message");
  auto type = field["type"].string().value_or("");
  if (type == "exit") {
    int code = static_cast<int>(field["exit_code"].integer().value_or(0));
    int signal = static_cast<int>(field["signal"].integer().value_or(0));
    stream.status = code >= 0 ? code & 0xff : 128 + (signal > 0 && signal < 65 ? signal : SIGKILL);
    if (code < 0) fmt::print(stderr, "osb: the command was killed by signal {}\n", *stream.status - 128);
  }
  if (type == "taken") {
    auto bytes = static_cast<size_t>(std::max<int64_t>(0, field["bytes"].integer().value_or(0)));
    stream.under_way -= std::min(stream.under_way, bytes);
    stream.room.set();
  }
  if (type == "error") stream.refusal = field["error"].string().value_or("the program could not be started");
  return {};
}

Result<void> on_message(Stream& stream, const http::WebSocketMessage& message) {
  std::string_view data = message.data;
  if (message.text) return on_text(stream, data);
  if (data.empty()) return {};
  int heard = stream.signals.count();
  auto show = [&](int fd, std::string_view bytes) {
    return write_unless_signalled(fd, bytes, stream.signals, heard);
  };
  if (data[0] == kOutput) return show(STDOUT_FILENO, data.substr(1));
  if (data[0] == kErrors) return show(STDERR_FILENO, data.substr(1));
  if (data[0] == kReplay && data.size() >= kReplayHead) return show(STDOUT_FILENO, data.substr(kReplayHead));
  return {};
}

// Until the program has ended, or the connection has.
Task<> pump_output(Stream& stream) {
  while (!stream.status && stream.refusal.empty()) {
    auto message = co_await stream.socket.read();
    if (message && !*message)
      stream.problem = Error{Code::unavailable, 0, "the connection ended before the command did"};
    if (!message) stream.problem = message.error();
    if (!message || !*message) co_return;
    auto taken = on_message(stream, **message);
    if (taken) continue;
    stream.problem = taken.error();
    co_return;
  }
}

Task<> end_input(Stream& stream) { (void)co_await stream.socket.send_text(R"({"type":"eof"})"); }

// Files and devices that are always ready cannot be waited for.
bool can_be_waited_for(int fd) {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {}};
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0 || errno != EPERM;
}

// As fast as the program reads.
Task<> pump_input(Stream& stream, bool wanted) {
  std::string buffer(kPiece, '\0');
  io::asio::posix::stream_descriptor input(co_await io::asio::this_coro::executor);
  bool waits = wanted && can_be_waited_for(STDIN_FILENO);
  boost::system::error_code closed;
  if (waits) input.assign(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), closed);
  if (closed) wanted = false;
  while (wanted) {
    while (stream.under_way >= kWindow) {
      stream.room.reset();
      co_await stream.room.wait();
    }
    if (waits && !co_await io::wait_readable(input)) break;
    ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) break;
    stream.under_way += static_cast<size_t>(n);
    if (!co_await stream.socket.send_binary({&kInput, 1},
                                            std::string_view(buffer).substr(0, static_cast<size_t>(n))))
      co_return;
  }
  co_await end_input(stream);
}

// What ends first is the output.
Task<> for_ever(Stream& stream, bool input) {
  co_await pump_input(stream, input);
  io::Event never(co_await io::asio::this_coro::executor);
  co_await never.wait();
}

std::string_view name_of(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGHUP ? "SIGHUP" : "SIGTERM";
}

// Passes signals on; returns with the second, or when the time is up.
Task<> pass_signals(Stream& stream) {
  for (int heard = 0; heard < 2;) {
    co_await stream.signals.more_than(heard);
    heard = stream.signals.count();
    int number = stream.signals.last().value_or(SIGTERM);
    std::string frame = fmt::format(R"({{"type":"signal","signal":"{}"}})", name_of(number));
    if (!co_await stream.socket.send_text(frame)) co_return;
  }
}

Task<> time_up(std::optional<std::chrono::milliseconds> limit) {
  if (limit) co_return co_await io::sleep_for(*limit);
  io::Event never(co_await io::asio::this_coro::executor);
  co_await never.wait();
}

Task<> watch(Stream& stream, std::optional<std::chrono::milliseconds> limit, bool* late) {
  *late = co_await io::race(pass_signals(stream), time_up(limit)) == 1;
}

}  // namespace

Task<Result<int>> run_program(Api& api, std::string id, Program program, Signals& signals) {
  auto executor = co_await io::asio::this_coro::executor;
  std::string session = CO_TRY(co_await api.new_terminal(id, program.what));
  auto connection = CO_TRY(co_await api.connect());
  auto socket = CO_TRY(co_await api.open_terminal(connection, id, session, "&pty=0&acks=1"));
  KeptFlags flags(STDIN_FILENO);
  Stream stream{.socket = socket, .signals = signals, .room = io::Event(executor)};
  bool late = false;
  auto flow = [](Stream& s, bool input) -> Task<> { co_await io::race(pump_output(s), for_ever(s, input)); };
  int ended = co_await io::race(flow(stream, program.input), watch(stream, program.timeout, &late));
  // With it goes the program, if it is still there. A sandbox keeps only so many of them.
  if (ended == 1 || !program.last) (void)co_await api.ask("DELETE", api.execd(id, "/pty/" + session));
  if (ended == 1) {
    if (!late) co_return fail(Code::cancelled, "interrupted");
    fmt::print(stderr, "osb: the command was killed: it ran longer than --timeout {}\n",
               print_duration(*program.timeout));
    co_return 124;
  }
  if (stream.status) co_return *stream.status;
  if (!stream.refusal.empty()) {
    CommandEnd end =
        end_from({.kind = StreamEvent::Kind::failed, .text = stream.refusal, .detail = "", .name = ""},
                 std::nullopt, {});
    fmt::print(stderr, "osb: {}\n", end.problem);
    co_return end.status;
  }
  co_return std::unexpected(
      stream.problem.value_or(Error{Code::unavailable, 0, "the connection ended before the command did"}));
}

}  // namespace osb::cli
