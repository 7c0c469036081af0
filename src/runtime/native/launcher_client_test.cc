#include "calls/launcher_client.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "io/testing.h"
#include "runtime/native/fake_launcher.h"
#include "runtime/native/native_runtime.h"
#include "sys/process.h"

namespace osb::runtime {
namespace {

using calls::Answered;
using calls::LauncherClient;
using io::testing::run;
using launcher::Request;
using ::testing::ElementsAre;
using testing::FakeLauncher;
using ::testing::HasSubstr;
using testing::say;
using testing::say_bytes;
using testing::say_error;

constexpr char kHandle[] = "01900000-0000-7000-8000-000000000001";

Fd null() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }
std::vector<Fd> nulls(size_t count) {
  std::vector<Fd> all;
  for (size_t i = 0; i < count; ++i) all.push_back(null());
  return all;
}

// Asks once, with a client of its own, and counts how often the launcher was lost.
template <class Message>
struct Outcome {
  Result<Answered<typename Message::Answer>> answer = fail(Code::internal, "not asked");
  int lost = 0;
};

template <class Message>
Task<> ask_once(LauncherClient* client, io::TaskGroup* tasks, Message message, Outcome<Message>* outcome,
                const int* lost) {
  tasks->spawn(client->run());
  outcome->answer = co_await client->ask(std::move(message));
  outcome->lost = *lost;  // closing the tasks ends the conversation, too
  co_await tasks->close();
}

template <class Message>
Outcome<Message> ask(Message message, FakeLauncher::Script script,
                     std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
  FakeLauncher fake(std::move(script));
  io::asio::io_context loop(1);
  Outcome<Message> outcome;
  int lost = 0;
  {
    LauncherClient client(loop.get_executor(), fake.channel(), [&] { ++lost; }, deadline);
    io::TaskGroup tasks(loop.get_executor());
    run(loop, ask_once(&client, &tasks, std::move(message), &outcome, &lost));
  }
  return outcome;
}

TEST(LauncherClient, AnAnswerIsReadAsWhatWasAskedFor) {
  auto got = ask(launcher::OomsRequest{{kHandle}}, [](int socket, const Request& request) {
    EXPECT_EQ(request.verb, launcher::Verb::ooms);
    EXPECT_EQ(request.body, kHandle);
    return say(socket, request, launcher::OomsAnswer{7});
  });
  ASSERT_TRUE(got.answer);
  EXPECT_EQ(got.answer->body.count, 7);
}

TEST(LauncherClient, ARefusalKeepsItsCodeAndWords) {
  auto got = ask(launcher::HealthRequest{}, [](int socket, const Request& request) {
    return say_error(socket, request, Code::exhausted, "no more");
  });
  ASSERT_FALSE(got.answer);
  EXPECT_EQ(got.answer.error().code, Code::exhausted);
  EXPECT_EQ(got.answer.error().message, "no more");
}

TEST(LauncherClient, ALauncherThatIsAwayIsUnavailable) {
  auto got = ask(launcher::HealthRequest{}, [](int, const Request&) { return false; });
  ASSERT_FALSE(got.answer);
  EXPECT_EQ(got.answer.error().code, Code::unavailable);
  EXPECT_EQ(got.lost, 1);
}

TEST(LauncherClient, ASlowLauncherIsATimeout) {
  auto got =
      ask(launcher::HealthRequest{}, [](int, const Request&) { return true; }, std::chrono::milliseconds(20));
  ASSERT_FALSE(got.answer);
  EXPECT_EQ(got.answer.error().code, Code::timeout);
  EXPECT_EQ(got.lost, 0);
}

TEST(LauncherClient, NonsenseIsTheEndOfTheConversation) {
  for (const std::string& bytes : {std::string("x"), std::string(17, '\0'), std::string(1000, '\xff')}) {
    auto got = ask(launcher::HealthRequest{}, [&](int socket, const Request&) {
      return launcher::send_message(socket, bytes, {}).has_value();
    });
    ASSERT_FALSE(got.answer);
    EXPECT_EQ(got.answer.error().code, Code::unavailable);
    EXPECT_EQ(got.lost, 1);
  }
}

TEST(LauncherClient, ABodyThatIsNotTheAnswerIsCorruptAndNothingElseEnds) {
  auto got = ask(launcher::ListRequest{}, [](int socket, const Request& request) {
    return say_bytes(socket, request, std::string("\xff\xff\xff\xff", 4));
  });
  ASSERT_FALSE(got.answer);
  EXPECT_EQ(got.answer.error().code, Code::corrupt);
  EXPECT_EQ(got.lost, 0);
}

TEST(LauncherClient, AnAnswerWithoutItsDescriptorIsNone) {
  auto got = ask(launcher::AdoptRequest{kHandle, {1, 1}}, [](int socket, const Request& request) {
    return say(socket, request, launcher::AdoptAnswer{});
  });
  ASSERT_FALSE(got.answer);
  EXPECT_THAT(got.answer.error().message, HasSubstr("too few descriptors"));
}

TEST(LauncherClient, MoreDescriptorsThanAMessageHasAreRefusedAndClosed) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  Fd reading(pipe[0]), writing(pipe[1]);
  auto got = ask(launcher::HealthRequest{}, [&](int socket, const Request& request) {
    // By hand: send_message() would not.
    std::string head =
        launcher::encode_head({.tag = request.tag, .message = {}, .body = {}, .descriptors = {}});
    constexpr size_t kCount = 2 * launcher::kMaxDescriptors;
    int all[kCount];
    for (int& fd : all) fd = writing.get();
    struct iovec part{head.data(), head.size()};
    alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof all)] = {};
    struct msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof all);
    std::memcpy(CMSG_DATA(header), all, sizeof all);
    return ::sendmsg(socket, &message, MSG_NOSIGNAL) > 0;
  });
  ASSERT_FALSE(got.answer);
  EXPECT_EQ(got.lost, 1);
  writing.reset();
  char byte;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0) << "a descriptor leaked";
}

TEST(LauncherClient, AnswersToNobodyAreDroppedWithTheirDescriptors) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  Fd reading(pipe[0]);
  std::vector<Fd> sent;
  sent.emplace_back(pipe[1]);
  auto got = ask(launcher::HealthRequest{}, [&](int socket, const Request& request) {
    Request other = request;
    other.tag += 1000;
    return say(socket, other, launcher::Done{}, std::exchange(sent, {})) &&
           say(socket, request, launcher::Done{});
  });
  EXPECT_TRUE(got.answer);
  char byte;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0) << "a descriptor leaked";
}

// The runtime above it.

class NativeRuntimeTest : public ::testing::Test {
 protected:
  // Runs `use` with a runtime whose launcher follows the script.
  template <class Use>
  void with(FakeLauncher::Script script, Use use) {
    FakeLauncher fake(std::move(script));
    io::asio::io_context loop(1);
    NativeSettings settings;
    settings.images.state_dir = ::testing::TempDir();
    settings.images.directories = {{"img", "/srv/rootfs"}};
    {
      NativeRuntime runtime(loop.get_executor(), std::move(settings), fake.channel(), [] {});
      run(loop, use_and_close(&runtime, use(runtime)));
    }
    asked_ = fake.asked();
  }
  static Task<> use_and_close(NativeRuntime* runtime, Task<> use) {
    co_await std::move(use);
    co_await runtime->close();
  }
  static std::string identity() { return "1234 5678 " + sys::boot_id().value_or(""); }

  std::vector<launcher::Verb> asked_;
};

Task<> list_into(NativeRuntime* runtime, Result<std::vector<std::string>>* out) {
  *out = co_await runtime->list();
}
Task<> adopt_into(NativeRuntime* runtime, std::string identity, Adoption* out) {
  *out = co_await runtime->adopt(kHandle, std::move(identity));
}
Task<> create_into(NativeRuntime* runtime, Created<std::string>* out) {
  SandboxSpec spec;
  spec.handle = kHandle;
  spec.image.reference = "img";
  *out = co_await create(*runtime, std::move(spec), {.id = "id", .entrypoint = {"/bin/true"}});
}

Task<> engine_into(NativeRuntime* runtime, Result<bool>* out) {
  auto connected = co_await runtime->connect_engine();
  *out = connected ? Result<bool>(connected->is_open()) : std::unexpected(connected.error());
}

TEST_F(NativeRuntimeTest, AnEngineWithTooManyWhoWaitIsAskedAgain) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  Fd theirs(pair[1]);
  std::vector<Fd> given;
  given.emplace_back(pair[0]);
  int times = 0;
  Result<bool> connected = false;
  with(
      [&](int socket, const Request& request) {
        if (++times < 3) return say_error(socket, request, Code::exhausted, "its queue is full");
        return say(socket, request, launcher::EngineAnswer{}, std::exchange(given, {}));
      },
      [&](NativeRuntime& runtime) { return engine_into(&runtime, &connected); });
  EXPECT_TRUE(connected && *connected);
  EXPECT_EQ(times, 3);
  with([](int socket,
          const Request& request) { return say_error(socket, request, Code::not_found, "no socket"); },
       [&](NativeRuntime& runtime) { return engine_into(&runtime, &connected); });
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().message, "no socket");
}

TEST_F(NativeRuntimeTest, AListIsAskedForPageByPage) {
  std::vector<std::string> after;
  Result<std::vector<std::string>> listed;
  with(
      [&](int socket, const Request& request) {
        after.push_back(request.body);
        launcher::ListAnswer page;
        size_t count = request.body.empty() ? launcher::kListPage : 1;
        for (size_t i = 0; i < count; ++i)
          page.ids.push_back("id-" + std::to_string(after.size() * 1000 + i));
        return say(socket, request, page);
      },
      [&](NativeRuntime& runtime) { return list_into(&runtime, &listed); });
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->size(), launcher::kListPage + 1);
  EXPECT_THAT(after, ElementsAre("", "id-1511"));
}

TEST_F(NativeRuntimeTest, AListThatIsNonsenseIsAnErrorNotAnEmptyHost) {
  Result<std::vector<std::string>> listed;
  with([](int socket, const Request& request) { return say_bytes(socket, request, "??"); },
       [&](NativeRuntime& runtime) { return list_into(&runtime, &listed); });
  EXPECT_FALSE(listed);
}

TEST_F(NativeRuntimeTest, OnlyAProcessThatIsGoneIsAnEnd) {
  for (Code code :
       {Code::unavailable, Code::timeout, Code::internal, Code::permission_denied, Code::corrupt}) {
    Adoption adoption;
    with([&](int socket, const Request& request) { return say_error(socket, request, code, "why"); },
         [&](NativeRuntime& runtime) { return adopt_into(&runtime, identity(), &adoption); });
    EXPECT_EQ(adoption.kind, Adoption::Kind::unknown) << to_string(code);
  }
  Adoption gone;
  with(
      [&](int socket, const Request& request) {
        return request.verb == launcher::Verb::adopt ? say_error(socket, request, Code::not_found, "gone")
                                                     : say(socket, request, launcher::OomsAnswer{0});
      },
      [&](NativeRuntime& runtime) { return adopt_into(&runtime, identity(), &gone); });
  EXPECT_EQ(gone.kind, Adoption::Kind::ended);
}

TEST_F(NativeRuntimeTest, ALauncherThatIsAwayOrTalksNonsenseEndsNoSandbox) {
  Adoption adoption;
  with([](int, const Request&) { return false; },
       [&](NativeRuntime& runtime) { return adopt_into(&runtime, identity(), &adoption); });
  EXPECT_EQ(adoption.kind, Adoption::Kind::unknown);
  with([](int socket, const Request&) { return launcher::send_message(socket, "?", {}).has_value(); },
       [&](NativeRuntime& runtime) { return adopt_into(&runtime, identity(), &adoption); });
  EXPECT_EQ(adoption.kind, Adoption::Kind::unknown);
  // An answer without the pidfd.
  with([](int socket, const Request& request) { return say(socket, request, launcher::AdoptAnswer{}); },
       [&](NativeRuntime& runtime) { return adopt_into(&runtime, identity(), &adoption); });
  EXPECT_EQ(adoption.kind, Adoption::Kind::unknown);
}

TEST_F(NativeRuntimeTest, AnotherBootIsNotAskedAbout) {
  Adoption adoption;
  with([](int, const Request&) { return false; },
       [&](NativeRuntime& runtime) { return adopt_into(&runtime, "1 2 another-boot", &adoption); });
  EXPECT_EQ(adoption.kind, Adoption::Kind::ended);
  EXPECT_EQ(adoption.end.kind, End::Kind::host_restarted);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(NativeRuntimeTest, AnIdentityWithoutABootIsAskedAbout) {
  Adoption adoption;
  with([](int socket,
          const Request& request) { return say_error(socket, request, Code::unavailable, "later"); },
       [&](NativeRuntime& runtime) { return adopt_into(&runtime, "1 2 ", &adoption); });
  EXPECT_EQ(adoption.kind, Adoption::Kind::unknown);
  EXPECT_FALSE(asked_.empty());
}

TEST_F(NativeRuntimeTest, ACreateThatFailedAtTheLauncherIsDestroyed) {
  struct {
    Code code;
    CreateFailure::Kind kind;
  } cases[] = {{Code::internal, CreateFailure::Kind::step_failed},
               {Code::exhausted, CreateFailure::Kind::overloaded}};
  for (const auto& one : cases) {
    Created<std::string> created;
    with(
        [&](int socket, const Request& request) {
          return request.verb == launcher::Verb::start ? say_error(socket, request, one.code, "step 3: no")
                                                       : say(socket, request, launcher::Done{});
        },
        [&](NativeRuntime& runtime) { return create_into(&runtime, &created); });
    ASSERT_FALSE(created);
    EXPECT_EQ(created.error().kind, one.kind);
    EXPECT_THAT(created.error().error.message, HasSubstr("step 3: no"));
    EXPECT_THAT(asked_, ElementsAre(launcher::Verb::start, launcher::Verb::destroy));
  }
}

TEST_F(NativeRuntimeTest, AStartedSandboxWithoutAWayToItIsDestroyed) {
  Created<std::string> created;
  with(
      [&](int socket, const Request& request) {
        return request.verb == launcher::Verb::start
                   ? say(socket, request, launcher::StartAnswer{{1234, 5678}}, nulls(1))
                   : say(socket, request, launcher::Done{});
      },
      [&](NativeRuntime& runtime) { return create_into(&runtime, &created); });
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().kind, CreateFailure::Kind::step_failed);
  EXPECT_THAT(asked_, ElementsAre(launcher::Verb::start, launcher::Verb::destroy));
}

TEST_F(NativeRuntimeTest, AStartWithoutAPidfdIsDestroyed) {
  Created<std::string> created;
  with(
      [&](int socket, const Request& request) {
        return request.verb == launcher::Verb::start
                   ? say(socket, request, launcher::StartAnswer{{1234, 5678}})
                   : say(socket, request, launcher::Done{});
      },
      [&](NativeRuntime& runtime) { return create_into(&runtime, &created); });
  ASSERT_FALSE(created);
  EXPECT_THAT(asked_, ElementsAre(launcher::Verb::start, launcher::Verb::destroy));
}

}  // namespace
}  // namespace osb::runtime
