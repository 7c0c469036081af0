#include "launcher/loop.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "launcher/bytes.h"

namespace osb::launcher {
namespace {

constexpr auto kServerGrace = std::chrono::seconds(8);
constexpr auto kRestartFirst = std::chrono::milliseconds(50);
constexpr auto kRestartMost = std::chrono::seconds(5);
constexpr auto kHealthyAfter = std::chrono::seconds(10);
constexpr auto kRetryFirst = std::chrono::microseconds(20);
constexpr auto kRetryMost = std::chrono::milliseconds(1);
constexpr auto kTrashDelay = std::chrono::milliseconds(200);
// How long things are kept for the next sandbox after the last one came or went.
constexpr auto kKeepSpares = std::chrono::seconds(1);
constexpr auto kFreezeLimit = std::chrono::seconds(10);
constexpr size_t kMostUnderWay = 2048;  // starts, ends and freezes; the server itself has half as many
constexpr size_t kMostErrorText = 4096;

}  // namespace

Loop::Loop(Settings& settings, StateDir& state, Sandboxes& sandboxes)
    : settings_(settings),
      state_(state),
      sandboxes_(sandboxes),
      retry_after_(kRetryFirst),
      restart_delay_(kRestartFirst) {}

void Loop::watch(int fd, Waiting waiting) {
  struct epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) < 0) {
    log::error("epoll_ctl", {{"error", errno_text(errno)}});
    return;
  }
  waiting_[fd] = std::move(waiting);
}

void Loop::forget(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  waiting_.erase(fd);
}

void Loop::answer(Answer answer) {
  if (!server_.channel.valid()) return;
  unsent_.push_back(std::move(answer));
  send_answers();
}

void Loop::send_answers() {
  while (!unsent_.empty() && server_.channel.valid()) {
    auto sent =
        send_message(server_.channel.get(), encode_head(unsent_.front()), unsent_.front().descriptors);
    if (!sent && sent.error().code == Code::exhausted) break;
    unsent_.pop_front();
    if (sent) continue;
    // An answer that is lost for another reason leaves its caller waiting; a fresh server recovers from what
    // is on disk and in the kernel.
    unsent_.clear();
    log::error("the server does not take its answers; restarting it", {{"error", sent.error().message}});
    if (server_.pid > 0) ::kill(server_.pid, SIGKILL);
  }
  set_interest();
}

// What to wait for in the server's channel.
void Loop::set_interest() {
  if (!server_.channel.valid()) return;
  bool busy = waiting_.size() + retries_.size() >= kMostUnderWay;
  uint32_t wanted = !unsent_.empty() ? EPOLLOUT : busy ? 0 : EPOLLIN;
  if (wanted == interest_) return;
  struct epoll_event event{};
  event.events = wanted;
  event.data.fd = server_.channel.get();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, server_.channel.get(), &event) == 0) interest_ = wanted;
}

void Loop::answer_error(uint64_t tag, const Error& error) {
  Answer a;
  a.tag = tag;
  a.error = error.sys_errno ? error.sys_errno : EIO;
  a.code = static_cast<uint32_t>(error.code);
  a.message = error.message.substr(0, kMostErrorText);
  answer(std::move(a));
}

void Loop::start_sandbox(const Request& request) {
  auto plan = decode_plan(request.body);
  if (!plan) return answer_error(request.tag, plan.error());
  auto owned = std::make_unique<Plan>(std::move(*plan));
  auto starting = sandboxes_.start(*owned);
  if (!starting) return answer_error(request.tag, starting.error());
  Waiting w;
  w.what = Waiting::For::start;
  w.tag = request.tag;
  w.id = owned->id;
  w.plan = std::move(owned);
  w.starting = std::make_unique<Starting>(std::move(*starting));
  int fd = w.starting->report.get();
  watch(fd, std::move(w));
}

void Loop::on_start_report(Waiting w) {
  auto pidfd = sandboxes_.finish(*w.starting, *w.plan);
  if (!pidfd) {
    log::warn("sandbox did not start", {{"id", w.id}, {"error", pidfd.error().message}});
    answer_error(w.tag, pidfd.error());
    end_sandbox(0, w.id, false);
    return;
  }
  Answer a;
  a.tag = w.tag;
  a.body = encode(w.starting->started);
  a.descriptors.push_back(std::move(*pidfd));
  answer(std::move(a));
  spares_wanted_ = true;
  drop_spares_at_ = Clock::now() + kKeepSpares;
}

// tag 0: nobody asked, nobody is told.
void Loop::end_sandbox(uint64_t tag, const std::string& id, bool keep_files) {
  auto init = sandboxes_.kill(id);
  if (!init) {
    if (tag) answer_error(tag, init.error());
    return;
  }
  Waiting w;
  w.what = Waiting::For::death;
  w.tag = tag;
  w.id = id;
  w.keep_files = keep_files;
  w.fd = std::move(*init);
  if (w.fd.valid()) {
    int fd = w.fd.get();
    return watch(fd, std::move(w));
  }
  end_when_empty(std::move(w));
}

void Loop::end_when_empty(Waiting w) {
  if (finish_end(w)) return;
  auto kept = std::make_shared<Waiting>(std::move(w));
  retry_after_ = kRetryFirst;
  retries_.push_back([this, kept] { return finish_end(*kept); });
}

bool Loop::finish_end(const Waiting& w) {
  auto removed = sandboxes_.remove(w.id, w.keep_files);
  // The last process is gone, but the kernel may hold its group for a moment longer.
  if (!removed && removed.error().code == Code::exhausted) return false;
  if (!removed) {
    log::error("cannot remove a sandbox", {{"id", w.id}, {"error", removed.error().message}});
    if (w.tag) answer_error(w.tag, removed.error());
    return true;
  }
  if (w.tag) answer({.tag = w.tag, .message = {}, .body = {}, .descriptors = {}});
  if (!w.keep_files) empty_trash_soon();
  drop_spares_at_ = Clock::now() + kKeepSpares;
  return true;
}

struct Loop::Freezing {
  uint64_t tag = 0;
  std::string id;
  pid_t server = -1;  // who asked
  Clock::time_point give_up;
  Fd events;
};

void Loop::freeze_sandbox(uint64_t tag, const std::string& id) {
  auto asked = sandboxes_.freeze(id, true);
  if (!asked) return answer_error(tag, asked.error());
  auto freezing = std::make_shared<Freezing>(tag, id, server_.pid, Clock::now() + kFreezeLimit, Fd());
  if (auto events = sandboxes_.open_events(id)) freezing->events = std::move(*events);
  if (finish_freeze(*freezing)) return;
  // Not by waiting for an event of cgroup.events: the kernel sends at most one in ten milliseconds.
  retry_after_ = kRetryFirst;
  retries_.push_back([this, freezing] { return finish_freeze(*freezing); });
}

bool Loop::finish_freeze(const Freezing& freezing) {
  // A new server has taken the sandbox over as paused: it stays so.
  if (freezing.server != server_.pid) return true;
  auto frozen = sandboxes_.frozen(freezing.events.get());
  if (frozen && !*frozen && Clock::now() < freezing.give_up) return false;
  if (frozen && *frozen) {
    answer({.tag = freezing.tag, .message = {}, .body = {}, .descriptors = {}});
    return true;
  }
  (void)sandboxes_.freeze(freezing.id, false);
  answer_error(freezing.tag, frozen
                                 ? Error{Code::timeout, ETIMEDOUT, "a process of the sandbox does not stop"}
                                 : frozen.error());
  return true;
}

// Not at once: under load one worker for many sandboxes is much cheaper than one for each.
void Loop::empty_trash_soon() {
  if (!trash_at_) trash_at_ = Clock::now() + kTrashDelay;
}

void Loop::empty_trash() {
  trash_at_.reset();
  if (trash_worker_ > 0 || stopping_ || state_.trash_is_empty()) return;
  trash_worker_ = ::fork();
  if (trash_worker_ == 0) state_.run_trash_worker();
}

void Loop::handle(const Request& request) {
  ByteReader in(request.body);
  Answer a;
  a.tag = request.tag;
  switch (request.verb) {
    case Verb::start:
      return start_sandbox(request);
    case Verb::stop:
      return end_sandbox(request.tag, request.body, true);
    case Verb::destroy:
      return end_sandbox(request.tag, request.body, false);
    case Verb::list: {
      auto page = sandboxes_.list(request.body);
      if (!page) return answer_error(request.tag, page.error());
      ByteWriter out;
      out.number(static_cast<uint32_t>(page->size()));
      for (const std::string& id : *page) out.string(id);
      a.body = out.take();
      return answer(std::move(a));
    }
    case Verb::adopt: {
      std::string id = in.string();
      auto pid = in.number<int64_t>();
      auto ticks = in.number<uint64_t>();
      auto pidfd = sandboxes_.adopt(id, static_cast<pid_t>(pid), ticks);
      if (!pidfd) return answer_error(request.tag, pidfd.error());
      auto frozen = sandboxes_.is_to_freeze(id);
      if (!frozen) return answer_error(request.tag, frozen.error());
      ByteWriter out;
      out.number(static_cast<uint8_t>(*frozen));
      a.body = out.take();
      a.descriptors.push_back(std::move(*pidfd));
      return answer(std::move(a));
    }
    case Verb::sockets: {
      std::string id = in.string();
      auto count = in.number<uint32_t>();
      auto sockets = sandboxes_.sockets(id, count);
      if (!sockets) return answer_error(request.tag, sockets.error());
      a.descriptors = std::move(*sockets);
      return answer(std::move(a));
    }
    case Verb::freeze:
      return freeze_sandbox(request.tag, request.body);
    case Verb::thaw: {
      auto was_frozen = sandboxes_.is_to_freeze(request.body);
      auto thawed = sandboxes_.freeze(request.body, false);
      if (!thawed) return answer_error(request.tag, thawed.error());
      ByteWriter out;
      out.number(static_cast<uint8_t>(was_frozen.value_or(true)));
      a.body = out.take();
      return answer(std::move(a));
    }
    case Verb::recall: {
      auto recalled = sandboxes_.recall(request.body);
      if (!recalled) return answer_error(request.tag, recalled.error());
      ByteWriter out;
      out.string(recalled->record);
      out.number(recalled->first_process.pid);
      out.number(recalled->first_process.start_ticks);
      a.body = out.take();
      return answer(std::move(a));
    }
    case Verb::record: {
      std::string id = in.string();
      std::string record = in.string();
      auto kept = in.complete() ? sandboxes_.keep_record(id, record) : fail(Code::corrupt, "record");
      return kept ? answer(std::move(a)) : answer_error(request.tag, kept.error());
    }
    case Verb::health: {
      auto possible = sandboxes_.health();
      return possible ? answer(std::move(a)) : answer_error(request.tag, possible.error());
    }
    case Verb::ooms: {
      auto count = sandboxes_.oom_kills(request.body);
      if (!count) return answer_error(request.tag, count.error());
      ByteWriter out;
      out.number(*count);
      a.body = out.take();
      return answer(std::move(a));
    }
  }
}

void Loop::on_server_message() {
  if (!unsent_.empty()) return send_answers();
  auto received = receive_message(server_.channel.get());
  if (!received && received.error().code == Code::exhausted) return;
  if (!received || received->bytes.empty()) {
    forget(server_.channel.get());
    server_.channel.reset();
    return;
  }
  auto request = decode_request(received->bytes);
  if (!request) {
    log::error("the server sent nonsense; restarting it", {{"error", request.error().message}});
    ::kill(server_.pid, SIGKILL);
    return;
  }
  handle(*request);
}

void Loop::start_server() {
  auto started = launcher::start_server(settings_);
  server_started_ = Clock::now();
  if (!started) {
    log::error("cannot start the server", {{"error", started.error().message}});
    restart_at_ = Clock::now() + restart_delay_;
    restart_delay_ = std::min<Clock::duration>(restart_delay_ * 2, kRestartMost);
    return;
  }
  server_ = std::move(*started);
  Waiting w;
  w.what = Waiting::For::server;
  watch(server_.channel.get(), std::move(w));
  interest_ = EPOLLIN;
}

void Loop::reap() {
  int status = 0;
  for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid == trash_worker_) {
      trash_worker_ = -1;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        empty_trash_soon();  // what arrived while it finished
    }
    if (pid != server_.pid) continue;
    if (server_.channel.valid()) forget(server_.channel.get());
    server_ = {};
    unsent_.clear();
    if (stopping_) return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kServerCannotStart) {
      log::error("the server cannot start, for the cause above; the service ends, sandboxes keep running");
      stopping_ = true;
      exit_status_ = kServerCannotStart;
      return;
    }
    auto lived = Clock::now() - server_started_;
    restart_delay_ = lived > kHealthyAfter ? Clock::duration(kRestartFirst)
                                           : std::min<Clock::duration>(restart_delay_ * 2, kRestartMost);
    restart_at_ = Clock::now() + restart_delay_;
    // Until then clients wait in the listener.
    auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(restart_delay_).count();
    log::warn("the server ended; starting it again",
              {{WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)},
               {"after_ms", wait}});
  }
}

void Loop::on_signals(int fd) {
  struct signalfd_siginfo info{};
  while (::read(fd, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) {
      reap();
    } else if (info.ssi_signo == SIGHUP) {
      // Sent by a terminal that goes away (also under nohup: a blocked signal reaches us although it is
      // ignored), or by somebody who expects a reload.
      log::info(
          "SIGHUP: going on; the configuration is read at the start only, so restart the service to "
          "change it, and stop it with SIGTERM");
    } else if (!stopping_) {
      stopping_ = true;
      stop_by_ = Clock::now() + kServerGrace;
      if (server_.pid > 0) ::kill(server_.pid, SIGTERM);
    } else if (server_.pid > 0) {
      ::kill(server_.pid, SIGKILL);  // asked twice
    }
  }
}

void Loop::dispatch(int fd) {
  auto found = waiting_.find(fd);
  if (found == waiting_.end()) return;
  switch (found->second.what) {
    case Waiting::For::signal:
      return on_signals(fd);
    case Waiting::For::server:
      return on_server_message();
    case Waiting::For::start:
    case Waiting::For::death: {
      Waiting w = std::move(found->second);
      forget(fd);
      if (w.what == Waiting::For::start) return on_start_report(std::move(w));
      return end_when_empty(std::move(w));
    }
  }
}

auto Loop::timeout() const -> Clock::duration {
  if (!retries_.empty()) return retry_after_;
  auto until = [](Clock::time_point t) {
    return std::max<Clock::duration>(Clock::duration{}, t - Clock::now());
  };
  if (stopping_) return until(stop_by_);
  if (server_.pid < 0) return until(restart_at_);
  if (spares_wanted_) return {};
  auto limit = Clock::duration::max();
  if (trash_at_ && trash_worker_ < 0) limit = until(*trash_at_);
  if (drop_spares_at_) limit = std::min(limit, until(*drop_spares_at_));
  return limit;
}

int Loop::wait(struct epoll_event* events, int count) {
  Clock::duration limit = timeout();
  if (limit == Clock::duration::max()) return ::epoll_wait(epoll_.get(), events, count, -1);
  auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(limit).count();
  struct timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  return ::epoll_pwait2(epoll_.get(), events, count, &time, nullptr);
}

void Loop::retry() {
  if (retries_.empty()) return;
  auto pending = std::exchange(retries_, {});
  for (auto& again : pending) {
    if (!again()) retries_.push_back(std::move(again));
  }
  retry_after_ = std::min<Clock::duration>(retry_after_ * 2, kRetryMost);
}

int Loop::run() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  Fd signal_fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!signal_fd.valid() || !epoll_.valid()) {
    log::error("cannot set up the loop", {{"error", errno_text(errno)}});
    return 1;
  }
  watch(signal_fd.get(), {});
  start_server();
  empty_trash();

  while (!(stopping_ && server_.pid < 0)) {
    struct epoll_event events[64];
    int count = wait(events, 64);
    for (int i = 0; i < count; ++i) dispatch(events[i].data.fd);
    retry();
    set_interest();
    if (trash_at_ && trash_worker_ < 0 && Clock::now() >= *trash_at_) empty_trash();
    if (drop_spares_at_ && Clock::now() >= *drop_spares_at_) {
      drop_spares_at_.reset();
      sandboxes_.drop_spares();
      empty_trash_soon();
    }
    if (count > 0) continue;
    // Nothing to answer: time for restarts, and for things made ahead of need.
    if (stopping_) {
      if (Clock::now() >= stop_by_ && server_.pid > 0) ::kill(server_.pid, SIGKILL), stop_by_ += kServerGrace;
    } else if (server_.pid < 0 && Clock::now() >= restart_at_) {
      start_server();
    } else if (spares_wanted_) {
      spares_wanted_ = sandboxes_.prepare();
    }
  }
  return exit_status_;
}

}  // namespace osb::launcher
