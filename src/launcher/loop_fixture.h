#pragma once

// For unit tests of the launcher's state machine, with peers that say whatever they like: services are
// children that only wait, their channels are in the hands of the test, and sandboxes are entries of a table.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <set>

#include "launcher/loop.h"

namespace osb::launcher {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr char kId[] = "01900000-0000-7000-8000-000000000001";

// Sandboxes without processes. What a real one does by itself happens when the test says so.
class Table : public SandboxTable {
 public:
  Result<Starting> start(const Plan& plan) override {
    if (!refuses.empty()) return fail(Code::permission_denied, refuses);
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno("pipe");
    reports[plan.id] = Fd(pipe[1]);
    Starting starting;
    starting.id = plan.id;
    starting.report = Fd(pipe[0]);
    starting.pidfd = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    starting.started = {1234, 5678};
    return starting;
  }
  Result<Fd> finish(Starting& starting, const Plan&) override {
    char byte;
    if (::read(starting.report.get(), &byte, 1) != 0) return fail(Code::internal, "step 3 failed");
    sandboxes.insert(starting.id);
    return std::move(starting.pidfd);
  }
  Result<Fd> kill(const std::string& id) override {
    killed.push_back(id);
    return Fd();
  }
  Result<void> remove(const std::string& id, bool) override {
    if (busy_for-- > 0) return fail(Code::exhausted, "still has processes");
    sandboxes.erase(id);
    removed.push_back(id);
    return {};
  }
  Result<Fd> adopt(const std::string&, const Started&) override {
    return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  Result<Recalled> recall(const std::string&) override { return Recalled{"record", {1, 2}}; }
  Result<void> keep_record(const std::string&, std::string_view) override { return {}; }
  Result<Listeners> listeners(const std::string& id) override {
    Listeners given{id, true, {}};
    for (int i = 0; i < 3; ++i) given.descriptors.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return given;
  }
  int callers() override { return calls.get(); }
  std::optional<Listeners> next_caller() override {
    uint64_t count = 0;
    if (::read(calls.get(), &count, sizeof count) != sizeof count) return std::nullopt;
    return *listeners(kId);
  }
  void nobody_listens() override { ++silences; }
  Result<Fd> connect_engine() override {
    if (!refuses.empty()) return fail(Code::unavailable, refuses);
    return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  Result<std::vector<Fd>> sockets(const std::string&, size_t count) override {
    std::vector<Fd> made;
    for (size_t i = 0; i < count; ++i) made.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return made;
  }
  Result<int64_t> oom_kills(const std::string&) override { return 3; }
  Result<void> freeze(const std::string&, bool to) override {
    frozen_calls.push_back(to);
    return {};
  }
  Result<Fd> open_events(const std::string&) override { return Fd(); }
  Result<bool> frozen(int) override { return freezes; }
  Result<bool> is_to_freeze(const std::string&) override { return is_paused; }
  Result<std::vector<std::string>> list(const std::string&, size_t) override {
    return std::vector<std::string>(sandboxes.begin(), sandboxes.end());
  }
  Result<void> health() override { return {}; }
  Result<Forked> capture(const std::string&, const std::string& snapshot) override {
    if (!refuses.empty()) return fail(Code::permission_denied, refuses);
    snapshots.insert(snapshot);
    return fork_in_halves([this](const Halfway& halfway) -> Result<void> {
      TRY(halfway());
      return capture_work();
    });
  }
  Result<Forked> keep_snapshot(const std::string& id, Lasting lasting) override {
    bool known = snapshots.contains(id);
    (lasting == Lasting::for_good ? kept : placed).insert(id);
    return fork_work([known] { return known ? Result<void>() : fail(Code::not_found, "no such snapshot"); });
  }
  Result<void> drop_snapshot(const std::string& id) override {
    snapshots.erase(id);
    kept.erase(id);
    placed.erase(id);
    return {};
  }
  Result<FoundSnapshot> find_snapshot(const std::string& id, Lasting lasting) override {
    bool lasts = kept.contains(id) || (lasting == Lasting::this_boot && placed.contains(id));
    if (!lasts || !snapshots.contains(id)) return fail(Code::not_found, "no such snapshot");
    FoundSnapshot found;
    found.manifest.layers = {{"root", std::string(64, 'a')}};
    found.record = "record";
    return found;
  }
  Result<Fd> diff(const std::string&) override { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }
  Result<std::vector<std::string>> list_snapshots(const std::string&, size_t) override {
    return std::vector<std::string>(snapshots.begin(), snapshots.end());
  }
  Result<Ensured> ensure_volume(const VolumeRequest& request) override {
    if (!refuses.empty()) return fail(Code::permission_denied, refuses);
    if (!volumes.insert(request.step.source).second) return Ensured();
    return Ensured{TRY(fork_work([this] {
      return volume_exists ? fail(Code::already_exists, "another was faster") : Result<void>();
    }))};
  }
  Result<void> drop_volume(const VolumePath& path) override {
    if (volumes.erase(path.volume()) > 0) return {};
    return fail(Code::not_found, "no such volume");
  }
  bool prepare() override { return false; }
  bool drop_spares() override { return held_for-- <= 0; }
  bool trash_is_empty() override { return stubborn_for-- <= 0; }  // asked before each worker
  [[noreturn]] void run_trash_worker() override { ::_exit(1); }

  std::set<std::string> volumes;
  bool volume_exists = false;
  std::string refuses;
  std::map<std::string, Fd> reports;  // of sandboxes that start
  std::set<std::string> sandboxes;
  std::vector<std::string> killed, removed;
  std::vector<bool> frozen_calls;
  bool freezes = true, is_paused = true;
  std::set<std::string> snapshots, kept, placed;
  std::function<Result<void>()> capture_work = [] { return Result<void>(); };
  int busy_for = 0, held_for = 0, stubborn_for = 0;
  Fd calls{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)};  // one for each sandbox that speaks
  int silences = 0;
};

// One life of a fake service.
struct Life {
  pid_t pid = -1;
  Fd channel;  // the peer's end
};

class LoopTest : public testing::Test {
 protected:
  void SetUp() override {
    ::sigemptyset(&mask_);
    ::sigprocmask(SIG_SETMASK, nullptr, &mask_);
  }
  void TearDown() override {
    loop_.reset();
    for (auto& [name, lives] : lives_) {
      for (Life& life : lives) ::kill(life.pid, SIGKILL);
    }
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

  static ServiceSpec spec(std::string name, VerbSet verbs = VerbSet::all()) {
    ServiceSpec spec;
    spec.name = std::move(name);
    spec.verbs = verbs;
    spec.restart = {milliseconds(1), milliseconds(20), std::chrono::seconds(10)};
    spec.grace = milliseconds(200);
    return spec;
  }
  void open(std::vector<ServiceSpec> services) {
    loop_.emplace(std::move(services), table_, [this](const ServiceSpec& s) { return spawn(s); });
    ASSERT_TRUE(loop_->open());
  }
  void open() { open({spec("server")}); }

  Result<ServiceProcess> spawn(const ServiceSpec& spec) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
      return fail_errno("socketpair");
    pid_t pid = ::fork();
    if (pid == 0) {
      ::close_range(3, ~0U, 0);  // nothing executes here: pipes of the test would stay open
      ::signal(SIGTERM, obeys_ ? SIG_DFL : SIG_IGN);
      sigset_t none;
      ::sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      if (exits_with_ >= 0) ::_exit(exits_with_);
      while (true) ::pause();
    }
    lives_[spec.name].push_back({pid, Fd(pair[1])});
    return ServiceProcess{pid, Fd(pair[0])};
  }

  // Turns until it is so; a turn waits at most until the next timer, so a beat keeps it going.
  template <class Condition>
  [[nodiscard]] bool until(Condition condition) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      nudge();
      if (!loop_->turn()) return condition();
    }
    return true;
  }
  // A child that ends at once: the loop wakes up for it.
  static void nudge() {
    if (pid_t pid = ::fork(); pid == 0) ::_exit(0);
  }

  std::deque<Life>& lives(const std::string& name = "server") { return lives_[name]; }
  Life& now(const std::string& name = "server") { return lives_[name].back(); }

  template <class Message>
  void ask(Life& life, uint64_t tag, const Message& message) {
    ASSERT_TRUE(
        send_message(life.channel.get(), encode(Request{tag, Message::kVerb, encode_body(message)}), {}));
  }
  static std::optional<Answer> heard(Life& life) {
    auto received = receive_message(life.channel.get());
    if (!received || received->bytes.empty()) return std::nullopt;
    auto answer = decode_answer(received->bytes);
    EXPECT_TRUE(answer);
    answer->descriptors = std::move(received->descriptors);
    return std::move(*answer);
  }
  Answer hear(Life& life) {
    std::optional<Answer> answer;
    EXPECT_TRUE(until([&] { return (answer = heard(life)).has_value(); }));
    return answer ? std::move(*answer) : Answer{};
  }
  template <class Message>
  Answer exchange(uint64_t tag, const Message& message) {
    ask(now(), tag, message);
    Answer answer = hear(now());
    EXPECT_EQ(answer.tag, tag);
    return answer;
  }
  static StartRequest start_request() {
    StartRequest request;
    request.plan.id = kId;
    return request;
  }

  Table table_;
  std::optional<Loop> loop_;
  std::map<std::string, std::deque<Life>> lives_;  // references stay
  bool obeys_ = true;
  int exits_with_ = -1;
  sigset_t mask_;
};

}  // namespace osb::launcher
