#include "cli/shell.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/cleanup.h"
#include "base/shell_words.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/kept_flags.h"
#include "cli/scratch_sandbox.h"
#include "json/decode.h"

namespace osb::cli {
namespace {

constexpr int kOwnFailure = 125;
constexpr char kCtrlP = 16, kCtrlQ = 17;
// First bytes of binary messages (execd's protocol of terminals).
constexpr char kInput = 0, kOutput = 1, kErrors = 2, kReplay = 3;
constexpr size_t kReplayHead = 9;

// Keys come as they are typed, and what the program writes is not changed, until this is gone.
class RawMode {
 public:
  explicit RawMode(int fd) : fd_(fd) {
    if (::tcgetattr(fd_, &before_) < 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    changed_ = ::tcsetattr(fd_, TCSADRAIN, &raw) == 0;
  }
  ~RawMode() {
    if (changed_) ::tcsetattr(fd_, TCSADRAIN, &before_);
  }
  RawMode(const RawMode&) = delete;

 private:
  int fd_;
  termios before_{};
  bool changed_ = false;
};

struct Shell {
  http::WebSocket& socket;
  Leaving leaving = Leaving::yes;
  DetachKeys keys = {};
  std::optional<int> status = {};  // the program's, when it has ended
  std::string problem = {};        // why there is none
};

Result<void> show(std::string_view bytes) { return write_all(STDOUT_FILENO, bytes); }

// Text messages say what happened, binary ones what was written.
Result<void> take_message(Shell& shell, const http::WebSocketMessage& message) {
  std::string_view data = message.data;
  if (!message.text) {
    if (data.empty()) return {};
    if (data[0] == kOutput || data[0] == kErrors) return show(data.substr(1));
    if (data[0] == kReplay && data.size() >= kReplayHead) return show(data.substr(kReplayHead));
    return {};
  }
  json::bj::value value = TRY(json::parse(data));
  json::Issues ignored;
  auto field = json::Field::root(value, ignored, "message");
  auto type = field["type"].string().value_or("");
  if (type == "exit") shell.status = static_cast<int>(field["exit_code"].integer().value_or(0));
  if (type == "error") shell.problem = field["error"].string().value_or("the terminal failed");
  return {};
}

Task<> pump_output(Shell& shell) {
  while (true) {
    auto message = co_await shell.socket.read();
    if (!message && message.error().code != Code::cancelled) shell.problem = message.error().message;
    if (!message || !*message) co_return;
    if (auto taken = take_message(shell, **message); !taken) {
      shell.problem = taken.error().message;
      co_return;
    }
  }
}

// Returns when the keys were pressed, or the terminal is gone.
Task<> pump_input(Shell& shell) {
  io::asio::posix::stream_descriptor keyboard(co_await io::asio::this_coro::executor, ::dup(STDIN_FILENO));
  std::string buffer(4096, '\0');
  while (!shell.keys.left()) {
    if (!co_await io::wait_readable(keyboard)) co_return;
    ssize_t n = ::read(keyboard.native_handle(), buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) co_return;
    std::string typed(buffer.data(), static_cast<size_t>(n));
    if (shell.leaving == Leaving::yes) typed = shell.keys.take(typed);
    if (!typed.empty() && !co_await shell.socket.send_binary({&kInput, 1}, typed)) co_return;
  }
}

Task<> send_size(Shell& shell) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0) co_return;
  std::string text = fmt::format(R"({{"type":"resize","cols":{},"rows":{}}})", size.ws_col, size.ws_row);
  (void)co_await shell.socket.send_text(text);
}

Task<> pump_size(Shell& shell) {
  io::asio::signal_set changes(co_await io::asio::this_coro::executor, SIGWINCH);
  while (true) {
    co_await send_size(shell);
    co_await changes.async_wait(io::asio::as_tuple(io::asio::use_awaitable));
  }
}

Task<> hung_up() {
  io::asio::signal_set ends(co_await io::asio::this_coro::executor, SIGTERM, SIGHUP);
  co_await ends.async_wait(io::asio::as_tuple(io::asio::use_awaitable));
}

Task<> either(Task<> a, Task<> b) { co_await io::race(std::move(a), std::move(b)); }

Task<Result<int>> attach(Api& api, const std::string& id, const std::string& session, Leaving leaving) {
  auto connection = CO_TRY(co_await api.connect());
  auto socket = CO_TRY(co_await api.open_terminal(connection, id, session, "&since=0"));
  Shell shell{.socket = socket, .leaving = leaving};
  {
    KeptFlags flags(STDIN_FILENO);
    RawMode raw(STDIN_FILENO);
    co_await either(either(pump_output(shell), pump_input(shell)), either(pump_size(shell), hung_up()));
  }
  if (shell.status) co_return *shell.status;
  if (!shell.problem.empty()) co_return fail(Code::unavailable, shell.problem);
  fmt::print(stderr, "\nosb: it goes on without you; back to it: osb shell {} --attach {}\n", id, session);
  co_return 0;
}

Result<void> want_terminal() {
  if (::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO)) return {};
  return fail(Code::invalid_argument, "a shell needs a terminal; without one: osb exec ID -- COMMAND");
}

Task<Result<int>> open(ShellOptions options) {
  CO_TRY(want_terminal());
  Api api(options.connection);
  std::string id = CO_TRY(co_await api.find(options.id));
  CO_TRY(co_await api.unlock(id));
  std::string session = options.session;
  if (session.empty())
    session = CO_TRY(co_await api.new_terminal(id, {.argv = options.command, .workdir = options.workdir}));
  co_return co_await attach(api, id, session, Leaving::yes);
}

}  // namespace

Task<Result<int>> open_terminal_of(Api& api, std::string id, ProgramRequest what, Leaving leaving) {
  CO_TRY(want_terminal());
  std::string session = CO_TRY(co_await api.new_terminal(id, std::move(what)));
  co_return co_await attach(api, id, session, leaving);
}

std::string DetachKeys::take(std::string_view typed) {
  std::string out;
  for (char key : typed) {
    if (std::exchange(held_, false)) {
      if (key == kCtrlQ) {
        left_ = true;
        return out;
      }
      out.push_back(kCtrlP);
    }
    held_ = key == kCtrlP;
    if (!held_) out.push_back(key);
  }
  return out;
}

io::Task<int> open_shell(ShellOptions options) {
  auto status = co_await open(std::move(options));
  if (status) co_return *status < 0 ? 128 : *status;
  print_error("osb", status.error());
  co_return kOwnFailure;
}

}  // namespace osb::cli
