#include "registry/downloads.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
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
constexpr int kMostAttempts = 6;  // without a single byte between them
constexpr std::chrono::milliseconds kFirstPause(250), kLongestPause(8000);
constexpr uint64_t kToldEvery = 1 << 20;

// The file of a layer, which nobody else writes now. Whoever else is downloading the same layer is waited
// for.
Result<Fd> open_blob(int directory, const std::string& digest) {
  while (true) {
    Fd file = TRY(open_at(directory, digest, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    while (::flock(file.get(), LOCK_EX) < 0) {
      if (errno != EINTR) return fail_errno("wait for another download of the layer");
    }
    struct stat info{};
    if (::fstat(file.get(), &info) < 0) return fail_errno("look at the file of a layer");
    // It was unpacked and removed while we waited.
    if (info.st_nlink > 0) return file;
  }
}

uint64_t size_of(int file) {
  struct stat info{};
  return ::fstat(file, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

Result<void> download(RepositoryClient& client, const Resolved::Layer& layer, int directory,
                      const std::function<void(uint64_t)>& told) {
  Fd file = TRY(open_blob(directory, layer.digest));
  auto pause = kFirstPause;
  int attempts = 0;
  uint64_t before = size_of(file.get());
  while (size_of(file.get()) != layer.size || layer.size == 0) {
    auto done = client.download(layer.digest, layer.size, file.get(), told);
    if (done) break;
    if (!may_be_tried_again(done.error())) return done;
    uint64_t now = size_of(file.get());
    if (now > before) attempts = 0, pause = kFirstPause;
    before = now;
    if (++attempts == kMostAttempts) return done;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
  told(layer.size);
  return {};
}

class Download {
 public:
  static Result<std::unique_ptr<Download>> start(RepositoryClient& client, const Resolved::Layer& layer,
                                                 int directory) {
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno("pipe");
    Fd ours(pipe[0]), theirs(pipe[1]);
    pid_t parent = ::getpid(), pid = ::fork();
    if (pid < 0) return fail_errno("fork");
    if (pid == 0) run(client, layer, directory, theirs.get(), parent);
    return std::unique_ptr<Download>(new Download(std::move(ours), pid));
  }
  Download(const Download&) = delete;
  ~Download() {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  int pipe() const { return pipe_.get(); }
  uint64_t bytes() const { return bytes_; }
  // Hears what there is to hear; true when the layer is here.
  Result<bool> hear() {
    auto frame = socket_.receive_some();
    while (frame && *frame) {
      auto event = TRY(decode_fetch_event(**frame));
      if (event.kind == FetchEvent::Kind::failed) return std::unexpected(std::move(event.error));
      if (event.kind == FetchEvent::Kind::done) return true;
      bytes_ = event.bytes;
      frame = socket_.next();
    }
    if (!frame) return fail(Code::internal, "a download ended without a word");
    return false;
  }

 private:
  Download(Fd pipe, pid_t pid) : pipe_(std::move(pipe)), socket_(pipe_.get()), pid_(pid) {}

  [[noreturn]] static void run(RepositoryClient& client, const Resolved::Layer& layer, int directory, int out,
                               pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    FrameSocket socket(out);
    uint64_t last = 0;
    auto done = download(client, layer, directory, [&](uint64_t bytes) {
      if (bytes < last) last = 0;
      if (bytes - last < kToldEvery && bytes != layer.size) return;
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

Result<void> download_layers(RepositoryClient& client, const std::vector<Resolved::Layer>& layers,
                             int directory, const std::function<void(uint64_t bytes)>& told) {
  std::vector<std::unique_ptr<Download>> running;
  uint64_t finished = 0;
  size_t next = 0;
  while (next < layers.size() || !running.empty()) {
    while (next < layers.size() && running.size() < kAtOnce)
      running.push_back(TRY(Download::start(client, layers[next++], directory)));
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

}  // namespace osb::registry
