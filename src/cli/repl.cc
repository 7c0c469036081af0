#include "cli/repl.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <boost/asio/this_coro.hpp>
#include <csignal>

#include "base/strings.h"
#include "cli/api_error.h"
#include "cli/cell_reader.h"
#include "cli/completion_cell.h"
#include "cli/kept_flags.h"
#include "cli/picture.h"
#include "cli/prompt.h"
#include "cli/scratch_sandbox.h"
#include "io/socket.h"

namespace osb::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kOwnFailure = 125;  // osb failed, not a cell
constexpr int kOutputClosed = 128 + 13;
constexpr auto kCompletionTime = 3s;

// Everything between the first prompt and the last. Lives in the frame of run_repl.
struct Session {
  ReplOptions options;
  ScratchSandbox& sandbox;
  Signals& signals;
  io::asio::posix::stream_descriptor input;
  bool waits = false;                   // the input can be waited for; a plain file cannot, and need not
  bool terminal = false;                // a person types
  std::unique_ptr<Prompt> prompt = {};  // for that person
  PictureFiles pictures{};              // those that the terminal did not draw
  std::string context;                  // id to interrupt
  std::string typed;                    // bytes behind the last line
  int heard = 0;                        // signals that something was done about; one may come at any time
  bool input_ended = false;
  bool a_cell_failed = false;
};

Result<void> print(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (n < 0 && errno != EINTR) {
      return fail_errno("write");
    } else if (n > 0) {
      text.remove_prefix(static_cast<size_t>(n));
    }
  }
  return {};
}

bool is_end_signal(Signals& signals) { return signals.last() && *signals.last() != SIGINT; }

Result<void> show_picture(const StreamEvent& event, PictureFiles& files) {
  auto drawn = inline_picture(event.picture, picture_protocol(::getenv));
  if (drawn && ::isatty(STDOUT_FILENO) == 1) return print(STDOUT_FILENO, *drawn);
  auto saved = files.save(event.picture);
  if (saved) return print(STDOUT_FILENO, "picture: " + *saved + "\n");
  TRY(print(STDOUT_FILENO, event.text + "\n"));
  return print(STDERR_FILENO, "osb: the picture: " + saved.error().message + "\n");
}

Result<void> show(const StreamEvent& event, Session& session) {
  switch (event.kind) {
    case StreamEvent::Kind::output:
      return print(STDOUT_FILENO, event.text);
    case StreamEvent::Kind::errors:
      return print(STDERR_FILENO, event.text);
    case StreamEvent::Kind::result:
      if (session.terminal && !event.picture.base64.empty()) return show_picture(event, session.pictures);
      return print(STDOUT_FILENO, event.text + "\n");
    default:
      return {};
  }
}

Task<> wait_for_input(Session& session) { (void)co_await io::wait_readable(session.input); }

// One more line, without its end. Code::cancelled after a signal, Code::not_found at the end of the input.
Task<Result<std::string>> read_line(Session& session) {
  for (;;) {
    size_t end = session.typed.find('\n');
    if (end == std::string::npos && session.input_ended && !session.typed.empty()) end = session.typed.size();
    if (end != std::string::npos) {
      std::string line = session.typed.substr(0, end);
      session.typed.erase(0, end + 1);
      co_return line;
    }
    if (session.input_ended) co_return fail(Code::not_found, "end of input");
    if (session.waits &&
        co_await io::race(wait_for_input(session), session.signals.more_than(session.heard)) == 1) {
      session.heard = session.signals.count();
      co_return fail(Code::cancelled, "interrupted");
    }
    char buffer[4096];
    ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) session.input_ended = true;
    if (n > 0) session.typed.append(buffer, static_cast<size_t>(n));
  }
}

// Passes interrupts on while a cell runs; returns when a signal asks for the end of everything.
Task<> pass_interrupts(Session& session) {
  for (;;) {
    co_await session.signals.more_than(session.heard);
    session.heard = session.signals.count();
    if (is_end_signal(session.signals)) co_return;
    // The first cell has one when its interpreter has started, and can be interrupted then.
    while (session.context.empty()) co_await io::sleep_for(20ms);
    (void)co_await session.sandbox.api().interrupt(session.sandbox.id(), session.context);
  }
}

OutputSink to_terminal(Session& session) {
  return [&session](const StreamEvent& event) -> Result<void> {
    if (event.kind == StreamEvent::Kind::started) session.context = event.text;
    return show(event, session);
  };
}

// False when a signal asked for the end. A cell that fails is no error here.
Task<Result<bool>> run_cell(Session& session, std::string cell) {
  std::optional<Result<StreamEvent>> last;
  auto stream = session.sandbox.api().run_code(session.sandbox.id(), session.options.language,
                                               std::move(cell), to_terminal(session));
  if (co_await io::race(store(&last, std::move(stream)), pass_interrupts(session)) == 1) co_return false;
  if (!*last) co_return std::unexpected(last->error());
  const StreamEvent& end = **last;
  session.a_cell_failed = end.kind == StreamEvent::Kind::failed;
  if (session.a_cell_failed) {
    std::string text;
    for (const std::string& line : end.traceback) text += line.ends_with('\n') ? line : line + "\n";
    if (text.empty()) text = end.name.empty() ? end.text + "\n" : end.name + ": " + end.text + "\n";
    CO_TRY(print(STDERR_FILENO, text));
  }
  co_return true;
}

// What may stand for a word, asked of the context itself.
Task<std::vector<std::string>> words_for(Session& session, std::string word) {
  std::string cell = completion_cell(session.options.language, word), text;
  if (cell.empty()) co_return std::vector<std::string>{};
  OutputSink sink = [&text](const StreamEvent& event) -> Result<void> {
    if (event.kind == StreamEvent::Kind::output) text += event.text;
    return {};
  };
  auto done = co_await io::with_deadline(
      kCompletionTime, "complete",
      session.sandbox.api().run_code(session.sandbox.id(), session.options.language, std::move(cell), sink));
  std::vector<std::string> words;
  if (!done) co_return words;
  for (std::string_view line : split(text, '\n'))
    if (!trim(line).empty()) words.emplace_back(trim(line));
  co_return words;
}

Task<Result<std::string>> next_line(Session& session, bool within) {
  if (!session.prompt) co_return co_await read_line(session);
  auto line =
      co_await session.prompt->read(within ? "... " : ">>> ", session.input, session.signals, session.heard);
  if (!line && line.error().code == Code::cancelled) session.heard = session.signals.count();
  co_return line;
}

Task<Result<void>> interact(Session& session) {
  CellReader reader(session.options.language);
  if (session.terminal && session.waits)
    session.prompt = std::make_unique<Prompt>(session.options.language, [&session](std::string word) {
      return words_for(session, std::move(word));
    });
  for (;;) {
    auto line = co_await next_line(session, reader.within());
    std::optional<std::string> cell;
    if (line) {
      cell = reader.feed(*line);
    } else if (line.error().code == Code::cancelled) {
      if (is_end_signal(session.signals)) co_return Result<void>{};
      reader.reset();  // as other prompts do: what was typed so far is dropped
      CO_TRY(print(STDOUT_FILENO, "\n"));
      continue;
    } else {
      cell = reader.finish();
    }
    if (cell) {
      auto ran = co_await run_cell(session, std::move(*cell));
      // A language that is not there, a full disk: said, and the prompt comes back. A lost sandbox ends it.
      if (!ran && ran.error().code != Code::unavailable && session.terminal) {
        print_error("osb", ran.error());
      } else if (!ran) {
        co_return std::unexpected(ran.error());
      } else if (!*ran) {
        co_return Result<void>{};
      }
    }
    if (!line) {
      if (session.terminal) CO_TRY(print(STDOUT_FILENO, "\n"));
      co_return Result<void>{};
    }
  }
}

Result<Session> open_session(io::Executor executor, ReplOptions options, ScratchSandbox& sandbox,
                             Signals& signals) {
  Session session{.options = std::move(options),
                  .sandbox = sandbox,
                  .signals = signals,
                  .input = io::asio::posix::stream_descriptor(executor),
                  .context = {},
                  .typed = {}};
  Fd copy(::dup(STDIN_FILENO));
  if (!copy.valid()) return fail_errno("standard input");
  boost::system::error_code error;
  session.input.assign(copy.get(), error);
  session.waits = !error;
  if (session.waits) copy.release();
  session.terminal = ::isatty(STDIN_FILENO) == 1;
  return session;
}

}  // namespace

Task<int> run_repl(ReplOptions options) {
  KeptFlags flags(STDIN_FILENO);
  auto executor = co_await io::asio::this_coro::executor;
  auto signals = Signals::create(executor);
  if (!signals) {
    print_error("osb", signals.error());
    co_return kOwnFailure;
  }
  NewSandbox what{.image = options.image,
                  .env = options.env,
                  .cpu = options.cpu,
                  .memory = options.memory,
                  .timeout = std::nullopt};
  ScratchSandbox sandbox(options.connection, std::move(what), ScratchSandbox::Afterwards::remove);
  PullLine line(PullLine::Wanted::yes);
  auto created = co_await sandbox.create(*signals, line);
  bool interrupted = !created && created.error().code == Code::cancelled;
  if (interrupted && sandbox.id().empty())
    fmt::print(stderr, "osb: interrupted while the sandbox was being created; see: osb ls\n");
  else if (!created && !interrupted)
    print_error("osb", created.error());
  if (!created) {
    co_await sandbox.clean_up(*signals);
    co_return interrupted ? 128 + *signals->first() : kOwnFailure;
  }

  std::optional<Result<void>> ended;
  bool terminal = false, failed = false;
  auto session = open_session(executor, options, sandbox, *signals);
  if (!session) {
    ended = std::unexpected(session.error());
  } else if (signals->count() == 0) {
    terminal = session->terminal;
    if (terminal) {
      fmt::print(stderr, "{} in sandbox {}, image {}. Ctrl-C interrupts, Ctrl-D leaves and removes it.\n",
                 options.language, sandbox.id(), options.image);
    }
    if (co_await io::race(store(&ended, interact(*session)), sandbox.keep_lease()) == 1) {
      ended = fail(Code::unavailable, "lost the connection to the server for a minute");
    }
    failed = session->a_cell_failed;
  }

  bool closed = ended && !*ended && ended->error().sys_errno == EPIPE;
  if (ended && !*ended && !closed) {
    // An answer of the server explains itself; a stream that broke does not.
    bool broken = ended->error().code == Code::unavailable;
    print_error("osb", broken ? co_await sandbox.explain(ended->error()) : ended->error());
  }
  co_await sandbox.clean_up(*signals);
  if (is_end_signal(*signals)) co_return 128 + *signals->last();
  if (closed) co_return kOutputClosed;
  if (ended && !*ended) co_return kOwnFailure;
  // For programs that pipe cells in, the last one's failure is ours; a person has seen it.
  co_return !terminal && failed ? 1 : 0;
}

}  // namespace osb::cli
