#include "launcher/loop.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"

namespace osb::launcher {
namespace {

constexpr auto kTrashDelay = std::chrono::milliseconds(200);
constexpr auto kTrashRetry = std::chrono::seconds(5);
constexpr auto kLastTrash = std::chrono::seconds(1);  // at the end; a worker that needs longer outlives us
constexpr size_t kMostUnderWay = 2048;  // starts, ends and freezes; the server itself has half as many

}  // namespace

Loop::Loop(std::vector<ServiceSpec> services, SandboxTable& sandboxes, Spawn spawn)
    : sandboxes_(sandboxes),
      requests_(sandboxes, reactor_,
                {.answer = [this](PeerId peer, Answer a) { answer(peer, std::move(a)); },
                 .is_there = [this](PeerId peer) { return find(peer) != nullptr; },
                 .started =
                     [this] {
                       spares_wanted_ = true;
                       keep_spares_a_while();
                     },
                 .removed = [this] { keep_spares_a_while(); },
                 .trashed = [this] { empty_trash_soon(); }}) {
  for (ServiceSpec& spec : services)
    services_.push_back(std::make_unique<Supervised>(std::move(spec), spawn));
}

Loop::Supervised* Loop::find(PeerId peer) {
  for (auto& supervised : services_) {
    if (peer != kNobody && supervised->peer == peer) return supervised.get();
  }
  return nullptr;
}

bool Loop::any_runs() const {
  return std::any_of(services_.begin(), services_.end(), [](const auto& s) { return s->service.runs(); });
}

// Requests and answers

void Loop::answer(PeerId peer, Answer answer) {
  Supervised* supervised = find(peer);
  if (!supervised || !supervised->service.channel()) return;
  auto sent = supervised->service.channel()->answer(std::move(answer));
  if (!sent) end_misbehaving(*supervised, sent.error());
}

// An answer that is lost leaves its caller waiting, and nonsense has no answer; a fresh service recovers from
// what is on disk and in the kernel.
void Loop::end_misbehaving(Supervised& supervised, const Error& error) {
  log::error("the " + supervised.service.spec().name + " is restarted", {{"error", error.message}});
  supervised.service.signal(SIGKILL);
}

void Loop::on_message(Supervised& supervised) {
  auto request = supervised.service.channel()->receive();
  if (!request && request.error().code == Code::unavailable) return close_channel(supervised);
  if (!request) return end_misbehaving(supervised, request.error());
  if (!*request) return;
  supervised.service.has_asked();
  requests_.handle(supervised.peer, **request);
}

void Loop::close_channel(Supervised& supervised) {
  if (Channel* channel = supervised.service.channel()) reactor_.forget(channel->fd());
  supervised.service.close_channel();
}

void Loop::set_interests() {
  bool busy = reactor_.under_way() >= kMostUnderWay;
  for (auto& supervised : services_) {
    if (Channel* channel = supervised->service.channel())
      reactor_.set_interest(channel->fd(), channel->interest(busy));
  }
}

// Services

void Loop::start(Supervised& supervised) {
  if (!supervised.service.start(Clock::now())) return;
  supervised.peer = ++last_peer_;
  Channel* channel = supervised.service.channel();
  if (!channel) return;
  auto watched = reactor_.watch(channel->fd(), [this, &supervised] { on_message(supervised); });
  if (!watched) end_misbehaving(supervised, watched.error());
}

Result<void> Loop::watch_wakes(Supervised& supervised) {
  for (int fd : supervised.service.spec().wakes)
    TRY(reactor_.watch(fd, [this, &supervised] { wake(supervised); }));
  return {};
}

void Loop::wake(Supervised& supervised) {
  for (int fd : supervised.service.spec().wakes) reactor_.forget(fd);
  supervised.service.wake();
}

void Loop::start_due() {
  for (auto& supervised : services_) {
    auto at = supervised->service.start_at();
    if (!stopping_ && at && Clock::now() >= *at) start(*supervised);
  }
}

void Loop::on_ended(Supervised& supervised, int wait_status) {
  close_channel(supervised);
  supervised.peer = kNobody;
  const ServiceSpec& spec = supervised.service.spec();
  if (spec.verbs.contains(Verb::callers)) sandboxes_.nobody_listens();
  bool again = supervised.service.ended(wait_status, Clock::now());
  if (stopping_ || again) return;
  if (!spec.is_essential) {
    log::error("the " + spec.name + " cannot start, for the cause above; the service goes on without it");
    return;
  }
  log::error("the " + spec.name +
             " cannot start, for the cause above; the service ends, sandboxes keep running");
  stop(WEXITSTATUS(wait_status));
}

void Loop::reap() {
  int status = 0;
  for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid == trash_worker_) {
      trash_worker_ = -1;
      // For what arrived while it finished, or for what it could not remove: nobody else comes back to that.
      bool progress = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      empty_trash_in(progress ? kTrashDelay : kTrashRetry);
    }
    for (auto& supervised : services_) {
      if (supervised->service.pid() == pid) on_ended(*supervised, status);
    }
  }
}

// The end

void Loop::stop(int exit_status) {
  stopping_ = true;
  exit_status_ = exit_status;
  auto grace = std::chrono::milliseconds(0);
  for (auto& supervised : services_) {
    supervised->service.do_not_restart();
    supervised->service.signal(SIGTERM);
    grace = std::max(grace, supervised->service.spec().grace);
  }
  stop_by_ = Clock::now() + grace;
}

void Loop::kill_late() {
  if (Clock::now() < stop_by_) return;
  for (auto& supervised : services_) {
    supervised->service.signal(SIGKILL);
    stop_by_ += supervised->service.spec().grace;
  }
}

void Loop::on_signals() {
  struct signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) {
      reap();
    } else if (info.ssi_signo == SIGHUP) {
      // Sent by a terminal that goes away (also under nohup: a blocked signal reaches us although it is
      // ignored), or by somebody who expects a reload.
      log::info(
          "SIGHUP: going on; the configuration is read at the start only, so restart the service to "
          "change it, and stop it with SIGTERM");
    } else if (!stopping_) {
      stop(0);
    } else {
      for (auto& supervised : services_) supervised->service.signal(SIGKILL);  // asked twice
    }
  }
}

// Timers

// Not at once: under load one worker for many sandboxes is much cheaper than one for each.
void Loop::empty_trash_soon() { empty_trash_in(kTrashDelay); }

void Loop::empty_trash_in(Clock::duration delay) {
  auto at = Clock::now() + delay;
  trash_at_ = trash_at_ ? std::min(*trash_at_, at) : at;
}

void Loop::empty_trash() {
  trash_at_.reset();
  if (trash_worker_ > 0 || sandboxes_.trash_is_empty()) return;
  trash_worker_ = ::fork();
  if (trash_worker_ == 0) sandboxes_.run_trash_worker();
  if (trash_worker_ < 0) empty_trash_in(kTrashRetry);
}

// What was deleted a moment ago would lie there until the next start.
void Loop::empty_trash_at_the_end() {
  empty_trash();
  auto until = Clock::now() + kLastTrash;
  while (trash_worker_ > 0 && ::waitpid(trash_worker_, nullptr, WNOHANG) == 0 && Clock::now() < until)
    ::usleep(1000);
}

void Loop::run_timers() {
  if (trash_at_ && trash_worker_ < 0 && Clock::now() >= *trash_at_) empty_trash();
  if (drop_spares_at_ && Clock::now() >= *drop_spares_at_) {
    drop_spares_at_.reset();
    if (!sandboxes_.drop_spares()) keep_spares_a_while();
    empty_trash_soon();
  }
}

// Not while a service waits for its next start: whatever keeps it down may be the lack of something.
bool Loop::is_time_for_spares() const {
  return spares_wanted_ && std::none_of(services_.begin(), services_.end(), [](const auto& supervised) {
           return supervised->service.start_at().has_value();
         });
}

auto Loop::timeout() const -> Clock::duration {
  auto until = [](Clock::time_point t) {
    return std::max<Clock::duration>(Clock::duration{}, t - Clock::now());
  };
  if (stopping_) return until(stop_by_);
  if (is_time_for_spares()) return {};
  auto limit = Clock::duration::max();
  for (const auto& supervised : services_) {
    if (auto at = supervised->service.start_at()) limit = std::min(limit, until(*at));
  }
  if (trash_at_ && trash_worker_ < 0) limit = std::min(limit, until(*trash_at_));
  if (drop_spares_at_) limit = std::min(limit, until(*drop_spares_at_));
  return limit;
}

Result<void> Loop::open() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  signals_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return fail_errno("signalfd");
  TRY(reactor_.open());
  TRY(reactor_.watch(signals_.get(), [this] { on_signals(); }));
  for (auto& supervised : services_) TRY(watch_wakes(*supervised));
  start_due();
  empty_trash();
  return {};
}

bool Loop::turn() {
  if (stopping_ && !any_runs()) return false;
  int events = reactor_.turn(timeout());
  set_interests();
  run_timers();
  if (stopping_) {
    kill_late();
  } else {
    start_due();
    // Nothing to answer: time for things made ahead of need.
    if (events == 0 && is_time_for_spares()) spares_wanted_ = sandboxes_.prepare();
  }
  return true;
}

int Loop::run() {
  if (auto opened = open(); !opened) {
    log::error("cannot set up the loop", {{"error", opened.error().message}});
    return 1;
  }
  while (turn()) {
  }
  requests_.leave();
  empty_trash_at_the_end();
  return exit_status_;
}

}  // namespace osb::launcher
