#include "execd/bash_session.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/ids.h"
#include "execd/command_request.h"
#include "execd/env_file.h"
#include "execd/events.h"
#include "execd/proc_stat.h"
#include "execd/shell_script.h"
#include "io/running_time.h"
#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr size_t kReadSize = 64 * 1024;
constexpr milliseconds kDefaultTimeout = std::chrono::hours(24);

char* read_buffer() {
  static std::unique_ptr<char[]> buffer(new char[kReadSize]);
  return buffer.get();
}

// A place in the queue for as long as it lives.
class Turn {
 public:
  Turn(std::list<BashSession::Run*>& queue, io::Event& changed, BashSession::Run* run)
      : queue_(queue), changed_(changed), at_(queue.insert(queue.end(), run)) {}
  ~Turn() {
    queue_.erase(at_);
    changed_.set();
  }
  Turn(const Turn&) = delete;
  bool first() const { return at_ == queue_.begin(); }

 private:
  std::list<BashSession::Run*>& queue_;
  io::Event& changed_;
  std::list<BashSession::Run*>::iterator at_;
};

}  // namespace

void BashSession::Run::stop(Stop why) {
  if (stopped == Stop::none) stopped = why;
  wake.set();
}

void BashSession::Run::cancel() { stop(Stop::cancelled); }

BashSession::BashSession(Core& core, std::string cwd)
    : core_(core), id_(new_uuid4()), cwd_(std::move(cwd)), output_(core.executor), turn_(core.executor) {}

std::expected<std::shared_ptr<BashSession>, SpawnError> BashSession::create(Core& core, std::string cwd) {
  std::shared_ptr<BashSession> self(new BashSession(core, std::move(cwd)));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0)
    return std::unexpected(SpawnError{errno, "", "pipe: " + errno_text(errno)});
  self->output_for_shells_ = Fd(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  self->output_.assign(ends[0]);
  self->file_env_ = read_env_file(core.env_file, core.env);
  Environment env = core.env;
  env.merge(self->file_env_);
  if (auto started = self->start_shell(env, self->cwd_); !started) return std::unexpected(started.error());
  self->shell_->make_keeper();
  core.tasks.spawn(read_output(self));
  return self;
}

std::expected<void, SpawnError> BashSession::start_shell(const Environment& env, const std::string& cwd) {
  auto found = find_shell(core_.env);
  if (found.name != "bash") {
    return std::unexpected(
        SpawnError{ENOENT, "bash", "sessions need bash, and this sandbox has none in its PATH"});
  }
  auto shell = Shell::start(core_, {found.file, cwd, env, core_.identity, output_for_shells_.get()});
  if (!shell) return std::unexpected(shell.error());
  shell_ = std::move(*shell);
  return {};
}

std::shared_ptr<BashSession::Run> BashSession::run(SessionRun request) {
  auto run = std::make_shared<Run>(core_.executor);
  core_.tasks.spawn(perform(shared_from_this(), run, std::move(request)));
  return run;
}

io::Task<> BashSession::perform(std::shared_ptr<BashSession> self, std::shared_ptr<Run> run,
                                SessionRun request) {
  // Whoever waits for a turn shall hear from us; but a bad directory is an answer without events.
  bool early = request.cwd.empty();
  auto announce = [&] {
    std::string first;
    events::append_init(first, self->id_, epoch_ms());
    events::append_ping(first, epoch_ms());
    run->events.push(first);
    run->decided.set();
  };
  if (early) announce();
  Turn turn(self->queue_, self->turn_, run.get());
  while (!turn.first() && run->stopped == Run::Stop::none) {
    self->turn_.reset();
    co_await io::race(self->turn_.wait(), run->wake.wait());
  }
  if (run->stopped == Run::Stop::none && !self->destroyed_ && !co_await self->ensure_shell()) {
    co_return self->refuse(*run, "the shell of this session cannot be started again");
  }
  if (run->stopped != Run::Stop::none || self->destroyed_) co_return self->refuse(*run, "signal: killed");
  co_await self->apply_env_file();
  if (!early) {
    auto entered = co_await self->shell_->control(shell::change_directory(request.cwd));
    if (entered != 0) {
      run->refusal = "cwd: '" + request.cwd + "' cannot be entered; it must be an existing directory";
      run->decided.set();
      co_return;
    }
    announce();
  }
  co_await self->execute(run, std::move(request));
}

io::Task<> BashSession::execute(std::shared_ptr<Run> run, SessionRun request) {
  run->started = std::chrono::steady_clock::now();
  drain();  // what background jobs said while nobody listened
  active_ = run.get();
  Moment since = Moment::now();
  auto answer = shell_->run(request.code);
  auto timeout = request.timeout.count() > 0 ? request.timeout : kDefaultTimeout;
  co_await wait_for_end(run, answer, timeout);
  if (!answer->status && !answer->shell_ended) {
    shell_->kill_since(since);
    co_await answer->changed.wait();
  }
  drain();
  finish(*run, *answer, timeout);
  active_ = nullptr;
  // Now rather than when the next command waits for it.
  if (!shell_->alive() && !destroyed_) co_await ensure_shell();
}

// Returns when the shell has answered or ended, or when the run is to be stopped.
io::Task<> BashSession::wait_for_end(std::shared_ptr<Run> run, std::shared_ptr<Shell::Request> request,
                                     milliseconds timeout) {
  io::asio::steady_timer timer(core_.executor);
  auto expire = [run](const boost::system::error_code& error) {
    if (!error) run->stop(Run::Stop::timeout);
  };
  io::async_wait_running(timer, timeout, std::move(expire));
  if (!request->changed.is_set()) co_await io::race(request->changed.wait(), run->wake.wait());
}

void BashSession::finish(Run& run, const Shell::Request& request, milliseconds timeout) {
  std::string last;
  int64_t now = epoch_ms();
  run.lines.flush(
      [&](std::string_view text) { events::append_output(last, events::Stream::out, text, now); });
  int code = request.status.value_or(-1);
  std::string text = "exit status " + std::to_string(code);
  if (!request.status && shell_->exit()) {
    code = shell_->exit()->api_code();
    text = shell_->exit()->text();
  }
  if (run.stopped == Run::Stop::timeout && !request.status) {
    text += ": the time limit of " + std::to_string(timeout.count()) + " ms was reached";
  }
  if (code == 0) {
    auto took = std::chrono::steady_clock::now() - run.started;
    events::append_complete(last, std::chrono::duration_cast<milliseconds>(took).count(), now);
  } else {
    events::append_error(last, events::kCommandError, std::to_string(code), text, now);
  }
  run.events.push(last);
  run.events.end();
}

// Ends a run that never reached the shell.
void BashSession::refuse(Run& run, std::string why) {
  std::string last;
  if (!run.decided.is_set()) events::append_init(last, id_, epoch_ms());
  events::append_error(last, events::kCommandError, "-1", why, epoch_ms());
  run.events.push(last);
  run.events.end();
  run.decided.set();
}

io::Task<bool> BashSession::ensure_shell() {
  if (shell_->alive()) co_return true;
  auto state = co_await shell_->recover();
  if (destroyed_) co_return false;
  if (!state) {
    // Even the keeper is gone. What is left is how the session began.
    Environment env = core_.env;
    file_env_ = read_env_file(core_.env_file, core_.env);
    env.merge(file_env_);
    if (!start_shell(env, cwd_)) co_return false;
    shell_->make_keeper();
    co_return true;
  }
  // The state says what is exported; starting from nothing keeps variables away that the session has unset.
  if (!start_shell({}, "/")) co_return false;
  bool restored =
      (co_await shell_->control("\\builtin eval " + shell::quote(*state) + " >/dev/null 2>&1")).has_value();
  shell_->make_keeper();
  co_return restored;
}

// Variables that clients wrote into the env file since the shell started.
io::Task<> BashSession::apply_env_file() {
  auto now = read_env_file(core_.env_file, core_.env);
  if (now == file_env_) co_return;
  std::string code;
  for (const auto& [name, value] : now) {
    auto known = file_env_.find(name);
    if (known != file_env_.end() && known->second == value) continue;
    code += "\\builtin export " + shell::quote(name + "=" + value) + " 2>/dev/null\n";
  }
  file_env_ = std::move(now);
  if (code.empty()) co_return;
  co_await shell_->control(std::move(code));
  shell_->make_keeper();
}

io::Task<> BashSession::read_output(std::shared_ptr<BashSession> self) {
  while (co_await io::wait_readable(self->output_)) {
    char* buffer = read_buffer();
    ssize_t n = ::read(self->output_.native_handle(), buffer, kReadSize);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
    if (n > 0) self->consume({buffer, static_cast<size_t>(n)});
    // Nobody listens: what runs in the background may wait.
    if (!self->active_) co_await io::sleep_for(milliseconds(5));
    if (auto run = self->active_; run && run->events.strained()) co_await run->events.wait_for_room();
  }
}

void BashSession::consume(std::string_view bytes) {
  if (!active_ || !active_->events.attached()) return;
  std::string encoded;
  int64_t now = epoch_ms();
  active_->lines.feed(
      bytes, [&](std::string_view text) { events::append_output(encoded, events::Stream::out, text, now); });
  active_->events.push(encoded);
}

void BashSession::drain() {
  int waiting = 0;
  if (::ioctl(output_.native_handle(), FIONREAD, &waiting) < 0) return;
  while (waiting > 0) {
    char* buffer = read_buffer();
    ssize_t n =
        ::read(output_.native_handle(), buffer, std::min<size_t>(kReadSize, static_cast<size_t>(waiting)));
    if (n <= 0) return;
    consume({buffer, static_cast<size_t>(n)});
    waiting -= static_cast<int>(n);
  }
}

void BashSession::destroy() {
  destroyed_ = true;
  shell_->kill_all();
  for (Run* run : queue_) run->cancel();
  output_for_shells_.reset();
}

}  // namespace osb::execd
