// The launcher's state machine with peers that say whatever they like: services are children that only wait,
// their channels are in the hands of the test, and sandboxes are entries of a table.
#include "launcher/loop.h"

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

namespace osb::launcher {
namespace {

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
  Result<Forked> keep_snapshot(const std::string& id) override {
    bool known = snapshots.contains(id);
    kept.insert(id);
    return fork_work([known] { return known ? Result<void>() : fail(Code::not_found, "no such snapshot"); });
  }
  Result<void> drop_snapshot(const std::string& id) override {
    snapshots.erase(id);
    kept.erase(id);
    return {};
  }
  Result<FoundSnapshot> find_snapshot(const std::string& id) override {
    if (!kept.contains(id) || !snapshots.contains(id)) return fail(Code::not_found, "no such snapshot");
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
  std::set<std::string> snapshots, kept;
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

// Requests

TEST_F(LoopTest, VerbsAreAnswered) {
  open();
  EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
  EXPECT_EQ(decode_body<OomsAnswer>(exchange(2, OomsRequest{{kId}}).body)->count, 3);
  EXPECT_EQ(exchange(3, AdoptRequest{kId, {1234, 5678}}).descriptors.size(), 1u);
  EXPECT_EQ(exchange(4, SocketsRequest{kId, 16}).descriptors.size(), 16u);
  EXPECT_EQ(decode_body<RecallAnswer>(exchange(5, RecallRequest{{kId}}).body)->record, "record");
  EXPECT_TRUE(decode_body<ThawAnswer>(exchange(6, ThawRequest{{kId}}).body)->was_frozen);
  EXPECT_EQ(exchange(7, RecordRequest{kId, "{}"}).error, 0);
  EXPECT_EQ(exchange(8, FreezeRequest{{kId}}).error, 0);
  EXPECT_EQ(exchange(9, DestroyRequest{{kId}}).error, 0);
  EXPECT_TRUE(decode_body<ListAnswer>(exchange(10, ListRequest{}).body)->ids.empty());
  EXPECT_EQ(exchange(11, DiffRequest{{kId}}).descriptors.size(), 1u);
}

TEST_F(LoopTest, AVolumeIsAnsweredWhenItIsThere) {
  open();
  VolumeRequest request{.step = {}, .create = true};
  request.step.kind = Step::Kind::volume;
  request.step.target = "/data";
  request.step.source = "default/a";
  auto made = [](const Answer& answer) { return decode_body<VolumeAnswer>(answer.body)->made; };
  EXPECT_TRUE(made(exchange(1, request)));
  EXPECT_FALSE(made(exchange(2, request)));
  table_.volume_exists = true;
  request.step.source = "default/b";
  EXPECT_FALSE(made(exchange(3, request))) << "another was faster, and it is there";
  EXPECT_EQ(exchange(4, DropVolumeRequest{"default", "b"}).error, 0);
  EXPECT_EQ(exchange(5, DropVolumeRequest{"default", "b"}).code, static_cast<uint32_t>(Code::not_found));
  for (const char* name : {"", "..", "a/b", "A"})
    EXPECT_THAT(exchange(6, DropVolumeRequest{"default", name}).message, HasSubstr("refused")) << name;
  EXPECT_THAT(exchange(7, VolumesRequest{"../x", ""}).message, HasSubstr("refused"));
  request.step.source = "../db";
  EXPECT_THAT(exchange(8, request).message, HasSubstr("refused"));
  request.step.kind = Step::Kind::bind;
  request.step.source = "/etc";
  EXPECT_THAT(exchange(9, request).message, HasSubstr("refused")) << "a bind that is no volume";
}

constexpr char kSnapshot[] = "02900000-0000-4000-8000-000000000002";

TEST_F(LoopTest, ACaptureFreezesAndLetsGoOn) {
  table_.is_paused = false;
  open();
  EXPECT_EQ(exchange(1, CaptureRequest{kId, kSnapshot}).error, 0);
  EXPECT_EQ(table_.frozen_calls, (std::vector<bool>{true, false}));
  EXPECT_EQ(decode_body<ListAnswer>(exchange(2, SnapshotsRequest{}).body)->ids,
            std::vector<std::string>{kSnapshot});
  Answer kept = exchange(3, KeepRequest{{kSnapshot}});
  ASSERT_EQ(kept.error, 0) << kept.message;
  auto body = decode_body<KeepAnswer>(kept.body);
  ASSERT_TRUE(body);
  EXPECT_EQ(body->record, "record");
  EXPECT_EQ(body->layers.at(0).overlay, "root");
  EXPECT_EQ(exchange(4, DropRequest{{kSnapshot}}).error, 0);
  EXPECT_NE(exchange(5, KeepRequest{{kSnapshot}}).error, 0);
}

TEST_F(LoopTest, ACaptureOfWhatIsPausedLeavesItSo) {
  open();
  EXPECT_EQ(exchange(1, CaptureRequest{kId, kSnapshot}).error, 0);
  EXPECT_EQ(table_.frozen_calls, std::vector<bool>{true});
}

TEST_F(LoopTest, ACaptureThatFailsLeavesNothingAndLetsGoOn) {
  table_.is_paused = false;
  table_.capture_work = [] { return Result<void>(fail_errno("copy", ENOSPC)); };
  open();
  Answer failed = exchange(1, CaptureRequest{kId, kSnapshot});
  EXPECT_EQ(failed.error, ENOSPC);
  EXPECT_THAT(failed.message, HasSubstr("copy"));
  EXPECT_EQ(table_.frozen_calls, (std::vector<bool>{true, false}));
  EXPECT_TRUE(table_.snapshots.empty());
}

TEST_F(LoopTest, WhoeverThawsASandboxEndsItsCapture) {
  table_.is_paused = false;
  table_.capture_work = [] {
    ::pause();
    return Result<void>();
  };
  open();
  ask(now(), 1, CaptureRequest{kId, kSnapshot});
  ASSERT_TRUE(until([&] { return !table_.snapshots.empty(); }));
  ask(now(), 2, CaptureRequest{kId, kSnapshot});
  EXPECT_EQ(hear(now()).tag, 2u) << "there is one at a time";
  ask(now(), 3, ThawRequest{{kId}});
  EXPECT_EQ(hear(now()).tag, 3u);
  Answer ended = hear(now());
  EXPECT_EQ(ended.tag, 1u);
  EXPECT_EQ(static_cast<Code>(ended.code), Code::cancelled);
  EXPECT_TRUE(table_.snapshots.empty());
}

TEST_F(LoopTest, AStartIsAnsweredWhenItsProcessRuns) {
  open();
  ask(now(), 1, start_request());
  ASSERT_TRUE(until([&] { return table_.reports.contains(kId); }));
  EXPECT_EQ(exchange(2, HealthRequest{}).error, 0) << "others do not wait for it";
  table_.reports.clear();
  Answer started = hear(now());
  EXPECT_EQ(started.tag, 1u);
  EXPECT_EQ(started.descriptors.size(), 1u);
  EXPECT_EQ(decode_body<StartAnswer>(started.body)->first_process.pid, 1234);
}

TEST_F(LoopTest, AStartThatFailedIsAnsweredAndCleanedUp) {
  open();
  ask(now(), 1, start_request());
  ASSERT_TRUE(until([&] { return table_.reports.contains(kId); }));
  ASSERT_TRUE(write_all(table_.reports[kId].get(), "x"));
  Answer failed = hear(now());
  EXPECT_NE(failed.error, 0);
  EXPECT_EQ(failed.message, "step 3 failed");
  ASSERT_TRUE(until([&] { return table_.removed.size() == 1; }));
  EXPECT_THAT(table_.killed, testing::ElementsAre(kId));
  nudge();
  ASSERT_TRUE(loop_->turn());
  EXPECT_FALSE(heard(now())) << "nobody asked for the end";
}

TEST_F(LoopTest, AnEndWaitsUntilTheKernelHasLetGo) {
  open();
  table_.busy_for = 5;
  EXPECT_EQ(exchange(1, DestroyRequest{{kId}}).error, 0);
  EXPECT_LE(table_.busy_for, 0);
  EXPECT_THAT(table_.removed, testing::ElementsAre(kId));
}

TEST_F(LoopTest, WhatTheKernelHoldsIsDroppedLater) {
  open();
  table_.held_for = 1;
  EXPECT_EQ(exchange(1, DestroyRequest{{kId}}).error, 0);
  EXPECT_TRUE(until([&] { return table_.held_for < 0; })) << "nobody comes back for it";
}

TEST_F(LoopTest, WhatCouldNotBeRemovedIsTriedAgain) {
  open();
  table_.stubborn_for = 2;
  EXPECT_EQ(exchange(1, DestroyRequest{{kId}}).error, 0);
  EXPECT_TRUE(until([&] { return table_.stubborn_for < 0; })) << "it stays until something else is removed";
}

TEST_F(LoopTest, WhatIsWrongInARequestIsAnsweredAndNothingEnds) {
  open();
  auto raw = [&](Verb verb, std::string body) {
    EXPECT_TRUE(send_message(now().channel.get(), encode(Request{9, verb, std::move(body)}), {}));
    return hear(now());
  };
  std::string whole = encode_body(AdoptRequest{kId, {2, 2}});
  EXPECT_THAT(raw(Verb::adopt, whole.substr(0, whole.size() - 1)).message, HasSubstr("adopt"));
  EXPECT_THAT(raw(Verb::adopt, whole + "x").message, HasSubstr("adopt"));
  EXPECT_THAT(raw(Verb::start, "half a plan").message, HasSubstr("start"));
  EXPECT_THAT(raw(Verb::health, "something").message, HasSubstr("health"));
  for (const std::string& id :
       {std::string(), std::string(".."), std::string("../x"), std::string(100'000, 'a')}) {
    for (Verb verb : {Verb::stop, Verb::destroy, Verb::freeze, Verb::thaw, Verb::ooms, Verb::recall,
                      Verb::listeners, Verb::keep, Verb::drop, Verb::diff})
      EXPECT_NE(raw(verb, id).error, 0) << to_string(verb);
    EXPECT_NE(raw(Verb::record, encode_body(RecordRequest{id, ""})).error, 0);
  }
  for (uint32_t count : {0u, 17u, 0xffff'ffffu})
    EXPECT_NE(raw(Verb::sockets, encode_body(SocketsRequest{kId, count})).error, 0) << count;
  EXPECT_TRUE(table_.killed.empty());
  EXPECT_TRUE(table_.frozen_calls.empty());
  EXPECT_EQ(lives().size(), 1u);
}

TEST_F(LoopTest, AFreezeThatIsNotCompleteWaits) {
  open();
  table_.freezes = false;
  ask(now(), 1, FreezeRequest{{kId}});
  ask(now(), 2, HealthRequest{});
  EXPECT_EQ(hear(now()).tag, 2u);
  table_.freezes = true;
  EXPECT_EQ(hear(now()).tag, 1u);
}

// Peers

TEST_F(LoopTest, GarbageEndsThePeerAndAFreshOneIsServed) {
  open();
  std::string good = encode(Request{1, Verb::list, ""});
  for (const std::string& bytes : {std::string("\0", 1), good.substr(0, good.size() - 1),
                                   std::string(1000, '\xff'), "\1" + good.substr(1)}) {
    size_t before = lives().size();
    ASSERT_TRUE(send_message(now().channel.get(), bytes, {}));
    ASSERT_TRUE(until([&] { return lives().size() == before + 1; }));
    EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
  }
}

TEST_F(LoopTest, APeerThatDisappearsMidRequestLeavesNothingUndone) {
  open();
  ask(now(), 1, start_request());
  ASSERT_TRUE(until([&] { return table_.reports.contains(kId); }));
  ::kill(now().pid, SIGKILL);
  ASSERT_TRUE(until([&] { return lives().size() == 2; }));
  table_.reports.clear();
  ASSERT_TRUE(until([&] { return table_.sandboxes.contains(kId); }));
  // The next one is not told of what it did not ask for, and finds the sandbox.
  EXPECT_THAT(decode_body<ListAnswer>(exchange(1, ListRequest{}).body)->ids, testing::ElementsAre(kId));
}

TEST_F(LoopTest, AFreezeOfAPeerThatIsGoneStays) {
  open();
  table_.freezes = false;
  ask(now(), 1, FreezeRequest{{kId}});
  ASSERT_TRUE(until([&] { return table_.frozen_calls.size() == 1; }));
  ::kill(now().pid, SIGKILL);
  ASSERT_TRUE(until([&] { return lives().size() == 2; }));
  EXPECT_EQ(exchange(2, HealthRequest{}).error, 0);
  EXPECT_THAT(table_.frozen_calls, testing::ElementsAre(true)) << "thawed behind the back of the next server";
}

TEST_F(LoopTest, APeerThatClosesItsChannelIsNotServedAndNotRestarted) {
  open();
  now().channel.reset();
  for (int i = 0; i < 10; ++i) {
    nudge();
    ASSERT_TRUE(loop_->turn());
  }
  EXPECT_EQ(lives().size(), 1u);
  ::kill(now().pid, SIGKILL);
  ASSERT_TRUE(until([&] { return lives().size() == 2; }));
  EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
}

TEST_F(LoopTest, MoreRequestsThanAnswersFitAreAllAnsweredInTheEnd) {
  open();
  uint64_t sent = 0, answered = 0;
  // Until neither side takes more.
  for (int idle = 0; idle < 3;) {
    bool took = send_message(now().channel.get(), encode(Request{sent + 1, Verb::ooms, kId}), {}).has_value();
    sent += took;
    idle = took ? 0 : idle + 1;
    nudge();
    ASSERT_TRUE(loop_->turn());
    ASSERT_LT(sent, 100'000u);
  }
  EXPECT_GT(sent, 10u);
  while (answered < sent) EXPECT_EQ(hear(now()).tag, ++answered);
  EXPECT_EQ(lives().size(), 1u);
}

TEST_F(LoopTest, EachPeerHasItsOwnVerbsAndAnswers) {
  open({spec("server"), spec("ingress", {Verb::health})});
  ask(now("ingress"), 5, start_request());
  Answer refused = hear(now("ingress"));
  EXPECT_EQ(refused.tag, 5u);
  EXPECT_EQ(static_cast<Code>(refused.code), Code::permission_denied);
  EXPECT_THAT(refused.message, HasSubstr("the ingress may not ask for start"));
  EXPECT_TRUE(table_.reports.empty());
  ask(now("ingress"), 6, HealthRequest{});
  EXPECT_EQ(hear(now("ingress")).error, 0);
  EXPECT_EQ(exchange(7, ListRequest{}).error, 0);
  EXPECT_FALSE(heard(now("ingress"))) << "an answer of somebody else";
}

TEST_F(LoopTest, WhoeverListensHearsOfASandboxThatSpeaks) {
  open();
  ask(now(), 1, CallersRequest{});
  EXPECT_EQ(exchange(2, HealthRequest{}).error, 0) << "others do not wait meanwhile";
  ::eventfd_write(table_.calls.get(), 2);
  Answer first = hear(now());
  EXPECT_EQ(first.tag, 1u);
  EXPECT_EQ(first.descriptors.size(), 3u);
  EXPECT_EQ(decode_body<ListenersAnswer>(first.body)->id, kId);
  EXPECT_EQ(exchange(3, CallersRequest{}).descriptors.size(), 3u) << "one that spoke before it was asked for";
}

TEST_F(LoopTest, WhoSpeaksWhileNobodyListensIsHeardByTheNextOne) {
  open();
  ask(now(), 1, CallersRequest{});
  EXPECT_EQ(exchange(2, HealthRequest{}).error, 0);
  ::kill(now().pid, SIGKILL);
  ASSERT_TRUE(until([&] { return lives().size() == 2; }));
  EXPECT_EQ(table_.silences, 1) << "its sockets ended with it";
  ::eventfd_write(table_.calls.get(), 1);
  EXPECT_EQ(exchange(3, HealthRequest{}).error, 0);
  EXPECT_EQ(exchange(4, CallersRequest{}).descriptors.size(), 3u);
}

// Services

TEST_F(LoopTest, AServiceThatNobodyNeedsIsStartedWhenSomebodyDoes) {
  ServiceSpec lazy = spec("egress", {Verb::callers});
  Fd door(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  lazy.wakes = {door.get(), table_.calls.get()};
  open({spec("server"), lazy});
  EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
  EXPECT_TRUE(lives("egress").empty());
  ::eventfd_write(table_.calls.get(), 1);
  ASSERT_TRUE(until([&] { return lives("egress").size() == 1; }));
  ask(now("egress"), 5, CallersRequest{});
  EXPECT_EQ(hear(now("egress")).tag, 5u);
  ::kill(now("egress").pid, SIGKILL);
  ASSERT_TRUE(until([&] { return lives("egress").size() == 2; })) << "once it was needed it is kept";
}

TEST_F(LoopTest, AServiceThatDiesIsStartedAgainAndOthersStay) {
  open({spec("server"), spec("egress", {})});
  for (size_t i = 1; i < 4; ++i) {
    ::kill(now().pid, SIGKILL);
    ASSERT_TRUE(until([&] { return lives().size() == i + 1; }));
  }
  EXPECT_EQ(lives("egress").size(), 1u);
  EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
}

TEST_F(LoopTest, AnEssentialServiceThatCannotStartEndsTheLauncher) {
  exits_with_ = kCannotStart;
  open();
  ASSERT_TRUE(until([&] { return !loop_->turn(); }));
  EXPECT_EQ(loop_->exit_status(), kCannotStart);
  EXPECT_EQ(lives().size(), 1u);
}

TEST_F(LoopTest, AnotherServiceThatCannotStartIsDoneWithout) {
  ServiceSpec extra = spec("extra", {});
  extra.is_essential = false;
  open({spec("server"), extra});
  // As its own status would say.
  Life& life = now("extra");
  ::kill(life.pid, SIGKILL);
  exits_with_ = kCannotStart;
  ASSERT_TRUE(until([&] { return lives("extra").size() == 2; }));
  for (int i = 0; i < 30; ++i) {
    nudge();
    ASSERT_TRUE(loop_->turn());
  }
  EXPECT_EQ(lives("extra").size(), 2u);
  EXPECT_EQ(exchange(1, HealthRequest{}).error, 0);
}

TEST_F(LoopTest, AsksItsServicesToEndAndEndsWithThem) {
  open({spec("server"), spec("egress", {})});
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  ASSERT_TRUE(until([&] { return !loop_->turn(); }));
  EXPECT_EQ(loop_->exit_status(), 0);
  EXPECT_EQ(lives().size(), 1u);
}

TEST_F(LoopTest, OneThatDoesNotEndIsKilledAfterAWhile) {
  obeys_ = false;
  open();
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  auto before = std::chrono::steady_clock::now();
  while (loop_->turn()) {
  }
  EXPECT_GE(std::chrono::steady_clock::now() - before, milliseconds(190));
}

TEST_F(LoopTest, AskedTwiceDoesNotWait) {
  obeys_ = false;
  ServiceSpec patient = spec("server");
  patient.grace = std::chrono::seconds(60);
  open({patient});
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  ASSERT_TRUE(loop_->turn());
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  while (loop_->turn()) {
  }
  EXPECT_EQ(loop_->exit_status(), 0);
}

TEST_F(LoopTest, StopsDuringAStart) {
  open();
  ask(now(), 1, start_request());
  ASSERT_TRUE(until([&] { return table_.reports.contains(kId); }));
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  while (loop_->turn()) {
  }
  // The sandbox goes on by itself; the next service finds it.
  EXPECT_TRUE(table_.killed.empty());
  EXPECT_EQ(loop_->exit_status(), 0);
}

}  // namespace
}  // namespace osb::launcher
