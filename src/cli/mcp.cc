#include "cli/mcp.h"

#include <unistd.h>

#include <boost/asio/this_coro.hpp>

#include "base/fd.h"
#include "cli/api_error.h"
#include "cli/mcp_http.h"
#include "cli/mcp_session.h"
#include "cli/terminal.h"
#include "io/socket.h"

namespace osb::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kLastAnswers = 10s;  // after the end of the input

struct Pipe {
  McpSession session;
  Signals& signals;
  io::asio::posix::stream_descriptor input;
  bool waits = false;   // a file does not: it is always ready
  bool closed = false;  // nobody reads what we write
  std::string typed = {};
  size_t running = 0;

  void write(std::string message) {
    message += '\n';  // json::print has none inside
    if (!closed && !write_unless_signalled(STDOUT_FILENO, message, signals)) closed = true;
  }
};

Task<> answer(Pipe& pipe, std::string line) {
  ++pipe.running;
  std::shared_ptr<void> leave(nullptr, [&pipe](void*) { --pipe.running; });
  auto reply = co_await pipe.session.handle(std::move(line),
                                            [&pipe](std::string text) { pipe.write(std::move(text)); });
  if (reply) pipe.write(std::move(*reply));
}

// Every line is a message. One that does not end within the bound ends the session: there is no way to find
// the next.
Task<> read_messages(Pipe& pipe, io::TaskGroup& group) {
  char buffer[65536];
  while (!pipe.closed) {
    if (pipe.waits) (void)co_await io::wait_readable(pipe.input);
    ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) break;
    size_t from = pipe.typed.size(), begin = 0;
    pipe.typed.append(buffer, static_cast<size_t>(n));
    for (size_t end; (end = pipe.typed.find('\n', std::max(from, begin))) != std::string::npos;
         begin = end + 1) {
      std::string line = pipe.typed.substr(begin, end - begin);
      if (line.find_first_not_of(" \t\r") != std::string::npos) group.spawn(answer(pipe, std::move(line)));
    }
    pipe.typed.erase(0, begin);
    if (pipe.typed.size() > kMaxMcpMessage)
      co_return pipe.write(mcp_failure({McpCode::invalid_request, "the message is larger than 16 MiB", {}}));
    if (!pipe.waits) co_await io::yield();
  }
  for (auto end = std::chrono::steady_clock::now() + kLastAnswers;
       pipe.running > 0 && !pipe.closed && std::chrono::steady_clock::now() < end;)
    co_await io::sleep_for(10ms);
}

Task<Result<int>> serve_pipe(McpOptions options, Signals& signals) {
  auto executor = co_await io::asio::this_coro::executor;
  Pipe pipe{.session = McpSession(executor, options.connection),
            .signals = signals,
            .input = io::asio::posix::stream_descriptor(executor)};
  Fd copy(::dup(STDIN_FILENO));
  if (!copy.valid()) co_return fail_errno("standard input");
  boost::system::error_code error;
  pipe.input.assign(copy.get(), error);
  pipe.waits = !error;
  if (pipe.waits) copy.release();
  io::TaskGroup group(executor);
  int first = co_await io::race(read_messages(pipe, group), signals.more_than(0));
  co_await group.close();
  co_return first == 1 ? 128 + signals.first().value_or(0) : 0;
}

}  // namespace

io::Task<int> serve_mcp(McpOptions options) {
  auto signals = Signals::create(co_await io::asio::this_coro::executor);
  if (!signals) {
    print_error("osb", signals.error());
    co_return 1;
  }
  auto status = options.http ? co_await serve_mcp_http(std::move(options), *signals)
                             : co_await serve_pipe(std::move(options), *signals);
  if (status) co_return *status;
  print_error("osb", status.error());
  co_return 1;
}

}  // namespace osb::cli
