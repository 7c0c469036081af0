#include "execd/command.h"

#include <sched.h>
#include <signal.h>

#include <algorithm>

#include "base/ids.h"
#include "execd/events.h"
#include "execd/process_tree.h"
#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr size_t kMuch = 4096;  // more than people read
constexpr size_t kMaxKeptContent = 16 * 1024;
constexpr auto kInterruptGrace = std::chrono::seconds(3);
constexpr auto kKillGrace = milliseconds(150);

io::Task<bool> wait_until_gone(ProcessGroup& group, io::Duration limit) {
  auto deadline = std::chrono::steady_clock::now() + limit;
  for (auto pause = milliseconds(1); group.signal(0); pause = std::min(pause * 2, milliseconds(50))) {
    if (std::chrono::steady_clock::now() >= deadline) co_return false;
    co_await io::sleep_for(pause);
  }
  co_return true;
}

}  // namespace

Command::Command(Core& core, const CommandSpec& spec)
    : core_(core),
      id_(new_hex_id()),
      content_(spec.content),
      mode_(spec.mode),
      started_at_(wall_now()),
      started_(std::chrono::steady_clock::now()),
      timeout_(core.executor),
      time_limit_(spec.timeout),
      events_(core.executor) {}

std::shared_ptr<Command> Command::start(Core& core, CommandSpec spec) {
  std::shared_ptr<Command> self(new Command(core, spec));
  auto launched = self->launch(spec);
  std::string first;
  int64_t now = epoch_ms();
  events::append_init(first, self->id_, now);
  if (!launched) {
    const std::string& reason = launched.error().message;
    events::append_error(first, events::kCommandError, reason, reason, now);
    self->finish(255, reason, first);
    return self;
  }
  if (self->mode_ == Mode::foreground) {
    events::append_ping(first, now);
  } else {
    events::append_complete(first, 0, now);
  }
  self->events_.push(first);
  if (self->mode_ == Mode::background) self->events_.end();
  self->attach_process();
  return self;
}

void Command::attach_process() {
  started_process_ = true;
  auto self = shared_from_this();
  core_.reaper.watch(pid_, [self](ExitStatus status) { self->on_exit(status); });
  for (auto* output : {&out_, &err_}) {
    if (*output) core_.tasks.spawn(read_output(self, &**output));
  }
  if (time_limit_.count() <= 0) return;
  // The command's time does not run while the sandbox is paused.
  timeout_.start(time_limit_, [weak = weak_from_this()] {
    auto command = weak.lock();
    if (!command || command->pid_ <= 0) return;
    command->timed_out_ = true;
    command->core_.tasks.spawn(end_tree([command] { return command->pid_; }));
  });
}

// The result is the end for the child.
Result<Fd> Command::open_pipe(std::optional<Output>& output) {
  output.emplace(core_.executor);
  return execd::open_pipe(output->pipe);
}

std::expected<void, SpawnError> Command::launch(CommandSpec& spec) {
  auto no_pipe = [](const Error& error) {
    return std::unexpected(SpawnError{error.sys_errno, "", error.message});
  };
  auto out = open_pipe(out_);
  if (!out) return no_pipe(out.error());
  Fd err;
  if (mode_ == Mode::foreground) {
    auto opened = open_pipe(err_);
    if (!opened) return no_pipe(opened.error());
    err = std::move(*opened);
  }
  SpawnRequest request;
  request.program = std::move(spec.program);
  request.argv = std::move(spec.argv);
  request.env = spec.env.block();
  request.cwd = std::move(spec.cwd);
  request.out = out->get();
  request.err = err.valid() ? err.get() : out->get();
  request.credentials = std::move(spec.credentials);
  request.gathers_orphans = spec.timeout.count() > 0;
  memory_kills_before_ = core_.memory_kills.look();
  auto pid = spawn(std::move(request));
  if (!pid) return std::unexpected(pid.error());
  pid_ = *pid;
  return {};
}

io::Task<> Command::read_output(std::shared_ptr<Command> self, Output* output) {
  while (co_await io::wait_readable(output->pipe)) {
    // execd goes before the processes of its sandbox, and would take each piece the moment it is written. Who
    // writes much goes on writing: few large pieces cost less than many small ones (decision 21).
    if (output->much) ::sched_yield();
    auto take = [&](std::string_view bytes) {
      output->much = bytes.size() >= kMuch;
      self->consume(*output, bytes);
    };
    if (!read_pipe(output->pipe.native_handle(), kPipeBytes, take)) break;
    // A process that was left behind and writes without end must not keep this one busy: its pipe is allowed
    // to be full.
    if (!self->running()) co_await io::sleep_for(milliseconds(10));
    if (self->events_.strained()) co_await self->events_.wait_for_room();
  }
  boost::system::error_code ignored;
  output->pipe.close(ignored);
}

void Command::consume(Output& output, std::string_view bytes) {
  if (!running()) return;
  if (mode_ == Mode::background) {
    log_.append(bytes);
    return;
  }
  if (!events_.attached()) return;
  static std::string encoded;
  encoded.clear();
  int64_t now = epoch_ms();
  auto stream = &output == &*out_ ? events::Stream::out : events::Stream::err;
  output.lines.feed(bytes, [&](std::string_view text) { events::append_output(encoded, stream, text, now); });
  events_.push(encoded);
  if (encoded.capacity() > (1 << 20)) encoded.shrink_to_fit();
}

void Command::drain(Output& output) {
  drain_pipe(output.pipe.native_handle(), [&](std::string_view bytes) { consume(output, bytes); });
}

std::string Command::imposed_end(ExitStatus status) {
  if (status.success()) return {};
  bool no_memory = core_.memory_kills.explains(status, memory_kills_before_);
  if (timed_out_) return time_limit_text(time_limit_);
  return no_memory ? out_of_memory_text(core_.limits.memory_bytes) : std::string();
}

void Command::on_exit(ExitStatus status) {
  pid_ = -1;
  use_ = status.use();
  if (interrupted_) interrupted_->leader_reaped();
  timeout_.cancel();
  // What is in the pipes now is the command's. What comes later is of processes that it left behind.
  for (auto* output : {&out_, &err_}) {
    if (*output) drain(**output);
  }
  std::string error = status.success() ? "" : status.text();
  if (std::string why = imposed_end(status); !why.empty()) {
    error += ": " + why;
    // Whoever reads its output later finds there why it stops.
    if (mode_ == Mode::background) log_.append("\nexecd: the command was ended: " + why + "\n");
  }
  std::string last;
  wall_time_ = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - started_);
  if (mode_ == Mode::foreground && events_.attached()) {
    flush_lines(last);
    int64_t now = epoch_ms();
    if (status.success()) {
      events::append_complete(last, wall_time_.count(), now);
    } else {
      events::append_error(last, events::kCommandError, std::to_string(status.api_code()), error, now);
    }
  }
  finish(status.api_code(), std::move(error), last);
}

void Command::flush_lines(std::string& encoded) {
  int64_t now = epoch_ms();
  auto flush = [&](std::optional<Output>& output, events::Stream stream) {
    if (output)
      output->lines.flush([&](std::string_view text) { events::append_output(encoded, stream, text, now); });
  };
  flush(out_, events::Stream::out);
  flush(err_, events::Stream::err);
}

void Command::finish(int exit_code, std::string error, std::string_view last_events) {
  finished_at_ = wall_now();
  exit_code_ = exit_code;
  error_ = std::move(error);
  if (content_.size() > kMaxKeptContent) {
    content_.resize(kMaxKeptContent);
    content_.shrink_to_fit();
  }
  events_.push(last_events);
  events_.end();
}

io::Task<> Command::interrupt(std::shared_ptr<Command> self) {
  if (self->pid_ <= 0) co_return;
  if (!self->interrupted_) self->interrupted_.emplace(self->pid_);
  ProcessGroup& group = *self->interrupted_;
  group.signal(SIGTERM);
  if (co_await wait_until_gone(group, kInterruptGrace)) co_return;
  group.signal(SIGKILL);
  co_await wait_until_gone(group, kKillGrace);
}

size_t Command::memory_bytes() const {
  return sizeof *this + content_.capacity() + error_.capacity() + log_.memory_bytes();
}

}  // namespace osb::execd
