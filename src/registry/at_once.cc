#include "registry/at_once.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "registry/fetch_messages.h"

namespace osb::registry {
namespace {

constexpr size_t kAtOnce = 4;
constexpr std::chrono::milliseconds kFirstPause(250), kLongestPause(8000);
constexpr uint64_t kToldEvery = 1 << 20;

class Running {
 public:
  static Result<std::unique_ptr<Running>> start(const Job& job) {
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno("pipe");
    Fd ours(pipe[0]), theirs(pipe[1]);
    pid_t parent = ::getpid(), pid = ::fork();
    if (pid < 0) return fail_errno("fork");
    if (pid == 0) run(job, theirs.get(), parent);
    return std::unique_ptr<Running>(new Running(std::move(ours), pid));
  }
  Running(const Running&) = delete;
  ~Running() {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  int pipe() const { return pipe_.get(); }
  uint64_t bytes() const { return bytes_; }
  // Hears what there is to hear; true when the job is done.
  Result<bool> hear() {
    auto frame = socket_.receive_some();
    while (frame && *frame) {
      auto event = TRY(decode_fetch_event(**frame));
      if (event.kind == FetchEvent::Kind::failed) return std::unexpected(std::move(event.error));
      if (event.kind == FetchEvent::Kind::done) return true;
      bytes_ = event.bytes;
      frame = socket_.next();
    }
    if (!frame) return fail(Code::internal, "a transfer ended without a word");
    return false;
  }

 private:
  Running(Fd pipe, pid_t pid) : pipe_(std::move(pipe)), socket_(pipe_.get()), pid_(pid) {}

  [[noreturn]] static void run(const Job& job, int out, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    FrameSocket socket(out);
    uint64_t last = 0;
    auto done = job.work([&](uint64_t bytes) {
      if (bytes < last) last = 0;
      if (bytes - last < kToldEvery && bytes != job.size) return;
      last = bytes;
      (void)socket.send(encode(FetchEvent{.kind = FetchEvent::Kind::progress, .bytes = bytes}));
    });
    FetchEvent end;
    if (!done) end = {.kind = FetchEvent::Kind::failed, .error = std::move(done.error())};
    (void)socket.send(encode(end));
    ::_exit(0);
  }

  Fd pipe_;
  FrameSocket socket_;
  pid_t pid_;
  uint64_t bytes_ = 0;
};

}  // namespace

Result<void> run_at_once(const std::vector<Job>& jobs, const Told& told) {
  std::vector<std::unique_ptr<Running>> running;
  uint64_t finished = 0;
  size_t next = 0;
  while (next < jobs.size() || !running.empty()) {
    while (next < jobs.size() && running.size() < kAtOnce)
      running.push_back(TRY(Running::start(jobs[next++])));
    std::vector<pollfd> fds;
    for (const auto& one : running) fds.push_back({one->pipe(), POLLIN, 0});
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return fail_errno("poll");
    uint64_t now = 0;
    for (size_t i = fds.size(); i-- > 0;) {
      bool done = fds[i].revents != 0 && TRY(running[i]->hear());
      if (done) finished += running[i]->bytes();
      if (!done) now += running[i]->bytes();
      if (done) running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
    told(finished + now);
  }
  return {};
}

Result<void> try_again(const std::function<Result<void>()>& attempt,
                       const std::function<uint64_t()>& progress, int most) {
  auto pause = kFirstPause;
  int attempts = 0;
  uint64_t before = progress();
  while (true) {
    auto done = attempt();
    if (done || !may_be_tried_again(done.error())) return done;
    uint64_t now = progress();
    if (now > before) attempts = 0, pause = kFirstPause;
    before = now;
    if (++attempts == most) return done;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace osb::registry
