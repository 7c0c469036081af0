#include "execd/bash_session.h"

#include "base/ids.h"
#include "execd/events.h"
#include "execd/shell_script.h"
#include "io/running_time.h"

namespace osb::execd {
namespace {

constexpr milliseconds kDefaultTimeout = std::chrono::hours(24);

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

void BashSession::Run::on_output(std::string_view bytes) {
  if (!events.attached()) return;
  std::string encoded;
  int64_t now = epoch_ms();
  lines.feed(bytes,
             [&](std::string_view text) { events::append_output(encoded, events::Stream::out, text, now); });
  events.push(encoded);
}

BashSession::BashSession(Core& core, std::shared_ptr<PersistentShell> shell)
    : core_(core), id_(new_uuid4()), shell_(std::move(shell)), turn_(core.executor) {}

std::expected<std::shared_ptr<BashSession>, SpawnError> BashSession::create(Core& core, std::string cwd) {
  auto shell = PersistentShell::create(core, std::move(cwd));
  if (!shell) return std::unexpected(shell.error());
  return std::shared_ptr<BashSession>(new BashSession(core, std::move(*shell)));
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
  bool prepared = run->stopped == Run::Stop::none && !self->destroyed_ && co_await self->shell_->prepare();
  if (run->stopped != Run::Stop::none || self->destroyed_) co_return self->refuse(*run, "signal: killed");
  if (!prepared) co_return self->refuse(*run, "the shell of this session cannot be started again");
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
  auto timeout = request.timeout.count() > 0 ? request.timeout : kDefaultTimeout;
  io::RunningTimer timer(core_.executor);
  timer.start(timeout, [run] { run->stop(Run::Stop::timeout); });
  uint64_t memory_kills_before = core_.memory_kills.look();
  auto outcome = co_await shell_->execute(std::move(request.code), run, run->wake);
  timer.cancel();
  std::string imposed = imposed_end(*run, outcome, timeout, memory_kills_before);
  finish(*run, outcome, imposed);
  // Now rather than when the next command waits for it.
  if (outcome.shell_exit && !destroyed_) co_await shell_->prepare();
}

// Why a run was ended, when that was not its own doing; "" otherwise.
std::string BashSession::imposed_end(const Run& run, const PersistentShell::Outcome& outcome,
                                     milliseconds timeout, uint64_t memory_kills_before) {
  if (run.stopped == Run::Stop::timeout && !outcome.status) return time_limit_text(timeout);
  if (!outcome.status && !outcome.shell_exit) return {};
  ExitStatus status = outcome.status ? ExitStatus(*outcome.status << 8) : *outcome.shell_exit;
  if (status.success() || !core_.memory_kills.explains(status, memory_kills_before)) return {};
  return out_of_memory_text(core_.limits.memory_bytes);
}

void BashSession::finish(Run& run, const PersistentShell::Outcome& outcome, const std::string& imposed) {
  std::string last;
  int64_t now = epoch_ms();
  run.lines.flush(
      [&](std::string_view text) { events::append_output(last, events::Stream::out, text, now); });
  int code = outcome.status.value_or(-1);
  std::string text = "exit status " + std::to_string(code);
  if (!outcome.status && outcome.shell_exit) {
    code = outcome.shell_exit->api_code();
    text = outcome.shell_exit->text();
  }
  if (!imposed.empty()) text += ": " + imposed;
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

void BashSession::destroy() {
  destroyed_ = true;
  shell_->destroy();
  for (Run* run : queue_) run->cancel();
}

}  // namespace osb::execd
