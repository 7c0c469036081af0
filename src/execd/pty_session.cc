#include "execd/pty_session.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ids.h"
#include "execd/command_request.h"
#include "execd/pipes.h"
#include "io/descriptor.h"
#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr size_t kReadSize = 32 * 1024;     // of one frame
constexpr size_t kMaxWaiting = 256 * 1024;  // then the program waits for its client
constexpr size_t kMaxInput = 4 << 20;
constexpr auto kQuiet = milliseconds(50);  // after the end: no more output for so long
constexpr auto kMaxDrain = std::chrono::seconds(2);

}  // namespace

struct PtySession::Process {
  explicit Process(io::Executor executor)
      : in(executor), out{Pipe(executor), Pipe(executor)}, input_changed(executor), read(executor) {}
  using Pipe = io::asio::posix::stream_descriptor;

  pid_t pid = -1;  // -1 once it was reaped
  Pipe in;         // pipes: its standard input. A terminal's master is out[0] for both directions
  Pipe out[2];
  bool terminal = false;
  std::string input;
  bool input_ends = false;
  io::Event input_changed;
  int readers = 0;
  int held_up = 0;  // readers that wait until their client has taken more
  io::Event read;   // something was read, a reader goes on or has ended
  bool closing = false;

  Pipe& input_end() { return terminal ? out[0] : in; }
  void close() {
    closing = true;
    boost::system::error_code ignored;
    for (Pipe* pipe : {&in, &out[0], &out[1]}) pipe->close(ignored);
    input_changed.set();
  }
};

PtySession::PtySession(Core& core, std::string cwd, std::string command, std::optional<CommandSpec> program)
    : core_(core),
      id_(new_uuid4()),
      cwd_(std::move(cwd)),
      command_(std::move(command)),
      program_(std::move(program)),
      room_(core.executor) {}

std::expected<std::shared_ptr<PtySession::Process>, SpawnError> PtySession::launch(PtyMode mode) {
  auto failed = [](const Error& error) {
    return std::unexpected(SpawnError{error.sys_errno, "", error.message});
  };
  auto process = std::make_shared<Process>(core_.executor);
  ShellProgram shell = find_shell(core_.env);
  SpawnRequest request;
  request.program = shell.file;
  request.argv = {shell.name};
  if (shell.name == "bash") request.argv.insert(request.argv.end(), {"--norc", "--noprofile"});
  if (!command_.empty()) request.argv.insert(request.argv.end(), {"-c", command_});
  Environment env = core_.command_env();
  env.set_default("SHELL", shell.file);
  if (mode == PtyMode::terminal) env.set_default("TERM", "xterm-256color");
  request.env = env.block();
  request.cwd = cwd_;
  request.credentials = core_.identity;
  if (program_) {
    request.program.clear();
    request.argv = program_->argv;
    env = program_->env;
    if (mode == PtyMode::terminal) env.set_default("TERM", "xterm-256color");
    request.env = env.block();
    request.credentials = program_->credentials;
  }

  Fd theirs[3];
  if (mode == PtyMode::terminal) {
    auto terminal = open_terminal({});
    if (!terminal) return failed(terminal.error());
    if (core_.identity) {
      [[maybe_unused]] int best_effort =
          ::fchown(terminal->slave.get(), core_.identity->uid, core_.identity->gid);
    }
    process->terminal = true;
    if (auto kept = io::assign(process->out[0], std::move(terminal->master)); !kept)
      return failed(kept.error());
    request.in = request.out = request.err = terminal->slave.get();
    request.group = Group::terminal;
    theirs[0] = std::move(terminal->slave);
  } else {
    PipeEnd* ours[] = {&process->in, &process->out[0], &process->out[1]};
    for (int i = 0; i < 3; ++i) {
      auto opened = open_pipe(*ours[i], i == 0 ? Ours::writes : Ours::reads);
      if (!opened) return failed(opened.error());
      theirs[i] = std::move(*opened);
    }
    request.in = theirs[0].get();
    request.out = theirs[1].get();
    request.err = theirs[2].get();
  }
  auto pid = spawn(std::move(request));
  if (!pid) return std::unexpected(pid.error());
  process->pid = *pid;
  return process;
}

std::expected<void, SpawnError> PtySession::start(PtyMode mode) {
  if (process_) return {};
  if (core_.ended) return std::unexpected(SpawnError{ESHUTDOWN, "", "the sandbox has ended"});
  auto launched = launch(mode);
  if (!launched) return std::unexpected(launched.error());
  mode_ = mode;
  untold_end_.reset();
  process_ = std::move(*launched);
  auto self = shared_from_this();
  for (int which = 0; which < (mode == PtyMode::terminal ? 1 : 2); ++which) {
    ++process_->readers;
    core_.tasks.spawn(read_output(self, process_, which));
  }
  core_.tasks.spawn(feed_input(self, process_));
  core_.reaper.watch(process_->pid, [self, process = process_](ExitStatus status) {
    process->pid = -1;
    self->core_.tasks.spawn(finish(self, process, status));
  });
  return {};
}

io::Task<> PtySession::read_output(std::shared_ptr<PtySession> self, std::shared_ptr<Process> process,
                                   int which) {
  Process::Pipe& pipe = process->out[which];
  char channel = static_cast<char>(1 + which);
  while (co_await io::wait_readable(pipe)) {
    std::string bytes(kReadSize, '\0');
    ssize_t n = ::read(pipe.native_handle(), bytes.data(), bytes.size());
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;  // a terminal ends with EIO
    if (n < 0) continue;
    self->deliver(channel, {bytes.data(), static_cast<size_t>(n)});
    ++process->held_up;
    while (self->client_ && self->client_->bytes > kMaxWaiting && !process->closing) {
      self->room_.reset();
      co_await self->room_.wait();
    }
    --process->held_up;
    process->read.set();
  }
  --process->readers;
  process->read.set();
}

void PtySession::deliver(char channel, std::string_view bytes) {
  replay_.append(bytes);
  if (!client_) return;
  client_->output.push_back({channel, std::string(bytes)});
  client_->bytes += bytes.size();
  client_->changed.set();
}

io::Task<> PtySession::feed_input(std::shared_ptr<PtySession> self, std::shared_ptr<Process> process) {
  while (!process->closing) {
    if (process->input.empty() && process->input_ends && !process->terminal) {
      boost::system::error_code ignored;
      process->in.close(ignored);
      break;
    }
    if (process->input.empty()) {
      process->input_changed.reset();
      co_await process->input_changed.wait();
      continue;
    }
    ssize_t n = ::write(process->input_end().native_handle(), process->input.data(), process->input.size());
    if (n > 0) {
      process->input.erase(0, static_cast<size_t>(n));
      if (self->client_) {
        self->client_->input_taken += static_cast<size_t>(n);
        self->client_->changed.set();
      }
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) break;
    auto [error] = co_await process->input_end().async_wait(Process::Pipe::wait_write,
                                                            io::asio::as_tuple(io::asio::deferred));
    if (error) break;
  }
}

// Everything that was printed comes before the end: a terminal's last bytes may arrive after its program's
// exit was seen. Descendants may hold the terminal open for ever, so it ends when nothing has come for a
// moment; a reader that waits for a slow client has not come to the end of what is there, whatever the time.
io::Task<> PtySession::finish(std::shared_ptr<PtySession> self, std::shared_ptr<Process> process,
                              ExitStatus status) {
  auto deadline = std::chrono::steady_clock::now() + kMaxDrain;
  while (process->readers > 0) {
    process->read.reset();
    if (process->held_up > 0) {
      co_await process->read.wait();
      deadline = std::chrono::steady_clock::now() + kMaxDrain;
      continue;
    }
    if (std::chrono::steady_clock::now() >= deadline) break;
    if (co_await io::race(process->read.wait(), io::sleep_for(kQuiet)) == 1) break;
  }
  process->close();
  self->room_.set();
  self->signal_ = status.signal();
  if (self->process_ == process) self->process_ = nullptr;
  if (!self->client_) co_return self->keep_untold(status.api_code());
  self->client_->exit_code = status.api_code();
  self->client_->changed.set();
}

void PtySession::keep_untold(int exit_code) {
  if (!process_) untold_end_ = exit_code;
}

ReplayBuffer::Piece PtySession::attach(std::shared_ptr<Client> client, uint64_t since) {
  client_ = std::move(client);
  if (!process_) client_->exit_code = std::exchange(untold_end_, std::nullopt);
  return replay_.since(since);
}

void PtySession::detach(const std::shared_ptr<Client>& client) {
  if (client_ != client) return;
  client_ = nullptr;
  if (client->exit_code) keep_untold(*client->exit_code);
  room_.set();
}

bool PtySession::write_input(std::string_view bytes) {
  if (!process_ || process_->input_ends || process_->input.size() + bytes.size() > kMaxInput) return false;
  process_->input += bytes;
  process_->input_changed.set();
  return true;
}

void PtySession::end_input() {
  if (!process_) return;
  process_->input_ends = true;
  process_->input_changed.set();
}

void PtySession::resize(TerminalSize size) {
  if (process_ && process_->terminal) resize_terminal(process_->out[0].native_handle(), size);
}

void PtySession::send_signal(int number) {
  if (!process_ || process_->pid <= 0) return;
  if (process_->terminal && signal_foreground(process_->out[0].native_handle(), process_->pid, number))
    return;
  ::kill(-process_->pid, number);
}

void PtySession::destroy() {
  if (process_ && process_->pid > 0) ::kill(-process_->pid, SIGKILL);
}

}  // namespace osb::execd
