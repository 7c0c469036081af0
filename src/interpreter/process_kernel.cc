#include "interpreter/process_kernel.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strings.h"
#include "execd/paths.h"
#include "io/descriptor.h"
#include "sys/pidfd_info.h"

namespace osb::interpreter {
namespace {

constexpr size_t kMaxLastWords = 2048;
constexpr size_t kMaxUnreadAnswers = 4096;
constexpr auto kExitDelay = std::chrono::milliseconds(200);
constexpr auto kIdlePause = std::chrono::milliseconds(5);
constexpr unsigned kToProcessGroup = 1u << 2;  // PIDFD_SIGNAL_PROCESS_GROUP

}  // namespace

Result<std::shared_ptr<ProcessKernel>> ProcessKernel::adopt(execd::Core& core, KernelEnds ours) {
  auto socket = TRY(io::adopt(core.executor, std::move(ours.socket)));
  std::shared_ptr<ProcessKernel> self(new ProcessKernel(core, std::move(socket)));
  TRY(io::assign(self->out_, std::move(ours.out)));
  TRY(io::assign(self->err_, std::move(ours.err)));
  for (Stream stream : {Stream::out, Stream::err}) core.tasks.spawn(read_output(self, stream));
  core.tasks.spawn(read_frames(self));
  return self;
}

Result<std::shared_ptr<ProcessKernel>> ProcessKernel::start(execd::Core& core, const KernelStart& start) {
  KernelChannel channel = TRY(KernelChannel::create());
  auto self = TRY(adopt(core, std::move(channel.ours)));
  self->launch(start, channel.theirs);
  return self;
}

execd::SpawnRequest KernelStart::request() const {
  execd::SpawnRequest request;
  request.program = program;
  request.argv = {std::string(execd::base_name(program))};
  request.argv.insert(request.argv.end(), language->arguments.begin(), language->arguments.end());
  request.env = env;
  request.cwd = cwd;
  return request;
}

void ProcessKernel::launch(const KernelStart& start, const KernelEnds& theirs) {
  auto source = kernel_source_file(*start.language);
  if (!source) return end("the kernel could not start: " + source.error().message);
  execd::SpawnRequest request = start.request();
  request.out = theirs.out.get();
  request.err = theirs.err.get();
  request.more = {{theirs.socket.get(), 3}, {*source, 4}};
  request.credentials = core_.identity;
  auto pid = execd::spawn(std::move(request));
  if (!pid) return end("the kernel could not start: " + pid.error().message);
  pid_ = *pid;
  auto self = shared_from_this();
  core_.reaper.watch(pid_, [self](execd::ExitStatus status) {
    self->pid_ = -1;
    self->on_exit(self->describe(status));
  });
  if (ended_) signal(SIGKILL);
}

void ProcessKernel::set_process(pid_t pid) {
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid() || !io::assign(pidfd_, std::move(pidfd))) return;  // it has ended: its socket tells
  pid_ = pid;
  if (ended_) return signal(SIGKILL);
  core_.tasks.spawn(watch_process(shared_from_this()));
  if (std::exchange(interrupt_pending_, false)) signal(SIGINT);
}

io::Task<> ProcessKernel::watch_process(std::shared_ptr<ProcessKernel> self) {
  if (!co_await io::wait_readable(self->pidfd_)) co_return;
  // The status is there when its parent has reaped it, a moment later.
  std::optional<int> status;
  for (int tries = 0; !status && tries < 5 && self->pidfd_.is_open(); ++tries) {
    if (tries > 0) co_await io::sleep_for(std::chrono::milliseconds(1));
    status = sys::exit_status_of(self->pidfd_.native_handle());
  }
  self->on_exit(status ? self->describe(execd::ExitStatus(*status)) : "it exited or was killed");
}

std::string ProcessKernel::describe(execd::ExitStatus status) {
  bool no_memory = core_.memory_kills.explains(status, memory_kills_before_);
  return status.text() + (no_memory ? ": " + execd::out_of_memory_text(core_.limits.memory_bytes) : "");
}

// A kernel that has not begun the cell yet would take the signal for nothing: the frame, which it finds
// behind the cell, says what is meant. Once is enough, so that a kernel which does not read gets its signals
// all the same.
void ProcessKernel::interrupt() {
  if (ended_) return;
  if (!busy_ || std::exchange(told_interrupt_, true)) return signal_interrupt();
  signal_when_written_ = true;
  send(encode_interrupt(run_id_));
}

void ProcessKernel::signal_interrupt() {
  if (pid_ > 1) return signal(SIGINT);
  interrupt_pending_ = !ended_;
}

void ProcessKernel::listen(std::weak_ptr<KernelListener> listener) {
  listener_ = std::move(listener);
  auto present = listener_.lock();
  if (!present) return;
  if (ended_) {
    present->on_end(*ended_);
  } else if (ready_) {
    present->on_ready();
  }
}

void ProcessKernel::run(std::string_view id, std::string_view code) {
  // What background processes said while nobody listened belongs to no cell.
  auto listener = std::exchange(listener_, {});
  drain(Stream::out);
  drain(Stream::err);
  listener_ = std::move(listener);
  busy_ = true;
  memory_kills_before_ = core_.memory_kills.look();
  run_id_ = id;
  told_interrupt_ = false;
  send(encode_run(id, code));
}

// One frame after the other: a kernel may be answered while it takes a cell.
void ProcessKernel::send(std::string_view message) {
  outgoing_ += encode_frame(message);
  if (!std::exchange(writing_, true)) core_.tasks.spawn(write_frames(shared_from_this()));
}

io::Task<> ProcessKernel::write_frames(std::shared_ptr<ProcessKernel> self) {
  while (!self->outgoing_.empty() && !self->ended_) {
    std::string frames = std::exchange(self->outgoing_, {});
    // No deadline: a kernel that does not read is one whose process can be interrupted or ended.
    auto written = co_await io::write_all(self->socket_, std::string_view(frames));
    if (!written) self->end("it does not take cells any more: " + written.error().message);
  }
  self->writing_ = false;
  if (std::exchange(self->signal_when_written_, false)) self->signal_interrupt();
}

io::Task<> ProcessKernel::read_frames(std::shared_ptr<ProcessKernel> self) {
  while (!self->ended_) {
    char piece[4096];
    auto n = co_await io::read_some(self->socket_, piece);
    if (!n || *n == 0) break;
    if (!self->on_bytes({piece, *n})) break;
    // A large frame arrives in large pieces.
    while (!self->ended_) {
      boost::system::error_code error;
      size_t more = self->socket_.available(error);
      if (error || more < sizeof piece) break;
      bool good = true;
      auto take = [&](std::string_view bytes) { good = self->on_bytes(bytes); };
      if (!execd::read_pipe(self->socket_.native_handle(), more, take) || !good) break;
    }
  }
  // Its process usually ends at the same moment, and how it ended is the better reason.
  if (!self->ended_) co_await io::sleep_for(kExitDelay);
  self->on_exit("it closed its channel");
}

bool ProcessKernel::on_bytes(std::string_view bytes) {
  frames_.feed(bytes);
  while (!ended_) {
    auto frame = frames_.next();
    if (!frame) {
      end("its channel makes no sense: " + frame.error().message);
      signal(SIGKILL);
      return false;
    }
    if (!*frame) return true;
    on_frame(**frame);
  }
  return false;
}

void ProcessKernel::on_frame(std::string_view text) {
  auto message = parse_message(text);
  if (!message) {
    end("its channel makes no sense: " + message.error().message);
    signal(SIGKILL);
    return;
  }
  // What was written before the frame comes before it.
  drain(Stream::out);
  drain(Stream::err);
  if (message->op == KernelMessage::Op::done) busy_ = false;
  bool first = message->op == KernelMessage::Op::ready && !ready_;
  ready_ = ready_ || first;
  if (auto listener = listener_.lock(); listener && first) {
    last_words_ = {};
    listener->on_ready();
  } else if (listener) {
    listener->on_message(*message);
  }
  // What it writes from now on comes after the frame. One that does not read its answers gets no more.
  if (message->wait && !ended_ && outgoing_.size() < kMaxUnreadAnswers) send(kShown);
}

io::Task<> ProcessKernel::read_output(std::shared_ptr<ProcessKernel> self, Stream stream) {
  Pipe& pipe = self->pipe(stream);
  while (co_await io::wait_readable(pipe)) {
    auto take = [&](std::string_view bytes) { self->consume(stream, bytes); };
    if (!execd::read_pipe(pipe.native_handle(), execd::kPipeBytes, take)) break;
    // Nobody listens: what runs in the background may wait.
    if (!self->busy_ && self->ready_) co_await io::sleep_for(kIdlePause);
  }
  boost::system::error_code ignored;
  pipe.close(ignored);
}

void ProcessKernel::drain(Stream stream) {
  execd::drain_pipe(pipe(stream).native_handle(), [&](std::string_view bytes) { consume(stream, bytes); });
}

void ProcessKernel::consume(Stream stream, std::string_view bytes) {
  if (!ready_ && stream == Stream::err) {
    last_words_.append(bytes);
    if (last_words_.size() > kMaxLastWords) last_words_.erase(0, last_words_.size() - kMaxLastWords);
  }
  if (!busy_) return;
  if (auto listener = listener_.lock()) listener->on_output(stream, bytes);
}

void ProcessKernel::on_exit(std::string how) {
  if (ended_) return;
  drain(Stream::out);
  drain(Stream::err);
  std::string said = std::string(trim(last_words_));
  if (!ready_ && !said.empty()) how += "; it said: " + said;
  end((ready_ ? "the kernel process has ended: " : "the kernel could not start: ") + how);
}

void ProcessKernel::end(std::string reason) {
  if (ended_) return;
  ended_ = std::move(reason);
  busy_ = false;
  auto self = shared_from_this();
  boost::system::error_code ignored;
  socket_.shutdown(io::Socket::shutdown_both, ignored);  // wakes the reader
  if (auto listener = listener_.lock()) listener->on_end(*ended_);
}

void ProcessKernel::signal(int number) {
  if (pid_ <= 1) return;
  if (pidfd_.is_open()) {
    int pidfd = pidfd_.native_handle();
    long sent = ::syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, kToProcessGroup);
    if (sent == 0 || errno == ESRCH) return;
    if (::syscall(SYS_pidfd_send_signal, pidfd, 0, nullptr, 0) != 0) return;  // it has ended
  }
  ::kill(-pid_, number);
}

void ProcessKernel::destroy() {
  listener_.reset();
  signal(SIGKILL);
  end("it was ended");
  boost::system::error_code ignored;
  out_.close(ignored);
  err_.close(ignored);
  pidfd_.close(ignored);
}

}  // namespace osb::interpreter
