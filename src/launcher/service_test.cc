#include "launcher/service.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/egress_process.h"
#include "launcher/server_process.h"

namespace osb::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = Service::Clock;

int exited(int status) { return status << 8; }

bool is_for_egress(Verb verb) { return verb == Verb::listeners || verb == Verb::callers; }

class ServiceTest : public testing::Test {
 protected:
  Result<ServiceProcess> spawn(const ServiceSpec&) {
    if (fails_) return fail(Code::internal, "no");
    ++spawned_;
    return ServiceProcess{1'000'000'000, Fd()};  // a number that no process has
  }
  Service make(ServiceSpec spec = {}) {
    spec.name = "daemon";
    return Service(std::move(spec), [this](const ServiceSpec& s) { return spawn(s); });
  }
  milliseconds delay(const Service& service) const {
    return std::chrono::duration_cast<milliseconds>(*service.start_at() - now_);
  }

  Clock::time_point now_ = Clock::now();
  bool fails_ = false;
  int spawned_ = 0;
};

TEST_F(ServiceTest, IsToBeStartedAtOnce) {
  Service service = make();
  ASSERT_TRUE(service.start_at());
  EXPECT_LE(*service.start_at(), now_);
  EXPECT_FALSE(service.runs());
  ASSERT_TRUE(service.start(now_));
  EXPECT_TRUE(service.runs());
  EXPECT_FALSE(service.start_at());
}

TEST_F(ServiceTest, WaitsLongerEachTimeItEndsSoon) {
  Service service = make();
  std::vector<long> delays;
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(service.start(now_));
    EXPECT_TRUE(service.ended(SIGKILL, now_));
    delays.push_back(delay(service).count());
    now_ = *service.start_at();
  }
  EXPECT_THAT(delays, testing::ElementsAre(100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000));
}

TEST_F(ServiceTest, WhatItLivedCountsAsWaiting) {
  Service service = make();
  std::vector<long> delays;
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(service.start(now_));
    now_ += seconds(3);
    EXPECT_TRUE(service.ended(SIGKILL, now_));
    delays.push_back(delay(service).count());
    now_ = *service.start_at();
  }
  EXPECT_THAT(delays, testing::ElementsAre(50, 50, 50, 50, 50, 200, 2000, 2000, 2000));
}

TEST_F(ServiceTest, IsNotStartedAgainWhenTheLauncherEnds) {
  Service service = make();
  ASSERT_TRUE(service.start(now_));
  service.do_not_restart();
  EXPECT_FALSE(service.ended(exited(0), now_));
  EXPECT_FALSE(service.start_at());
}

TEST_F(ServiceTest, OneThatLivedStartsAnewSoon) {
  Service service = make();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(service.start(now_));
    ASSERT_TRUE(service.ended(exited(1), now_));
  }
  ASSERT_TRUE(service.start(now_));
  now_ += seconds(11);
  ASSERT_TRUE(service.ended(exited(0), now_));
  EXPECT_EQ(delay(service), milliseconds(50));
}

TEST_F(ServiceTest, WhatCannotBeStartedIsTriedAgainLater) {
  Service service = make();
  fails_ = true;
  EXPECT_FALSE(service.start(now_));
  EXPECT_FALSE(service.runs());
  EXPECT_EQ(delay(service), milliseconds(50));
  EXPECT_FALSE(service.start(now_));
  EXPECT_EQ(delay(service), milliseconds(100));
  fails_ = false;
  EXPECT_TRUE(service.start(now_));
  EXPECT_TRUE(service.runs());
}

TEST_F(ServiceTest, OneThatCanNeverStartIsNotStartedAgain) {
  Service service = make();
  ASSERT_TRUE(service.start(now_));
  EXPECT_FALSE(service.ended(exited(kCannotStart), now_));
  EXPECT_FALSE(service.start_at());
  EXPECT_FALSE(service.runs());
}

TEST_F(ServiceTest, OnlyItsOwnStatusMeansThat) {
  for (int status : {exited(0), exited(1), exited(77), exited(79), kCannotStart /* the signal */}) {
    Service service = make();
    ASSERT_TRUE(service.start(now_));
    EXPECT_TRUE(service.ended(status, now_)) << status;
  }
}

TEST_F(ServiceTest, ReadyWhenStartedOrWhenItAsks) {
  Service plain = make();
  ASSERT_TRUE(plain.start(now_));
  EXPECT_TRUE(plain.is_ready());
  ServiceSpec spec;
  spec.ready = ServiceSpec::Ready::when_it_asks;
  Service slow = make(spec);
  ASSERT_TRUE(slow.start(now_));
  EXPECT_FALSE(slow.is_ready());
  slow.has_asked();
  EXPECT_TRUE(slow.is_ready());
  (void)slow.ended(exited(1), now_);
  EXPECT_FALSE(slow.is_ready());
  ASSERT_TRUE(slow.start(now_));
  EXPECT_FALSE(slow.is_ready()) << "the one before said so";
}

// Real processes, without privileges.

class SpawnTest : public testing::Test {
 protected:
  // The status of a shell that gets `given` and runs `script`.
  int run(const std::string& script, std::vector<ServiceSpec::Given> given = {}, int channel_as = -1) {
    Fd shell(::open("/bin/sh", O_RDONLY | O_CLOEXEC));
    ServiceSpec spec;
    spec.name = "shell";
    spec.executable = shell.get();
    spec.arguments = {"sh", "-c", script};
    spec.descriptors = std::move(given);
    spec.channel_as = channel_as;
    auto process = spawn_service(spec);
    EXPECT_TRUE(process);
    EXPECT_EQ(process->channel.valid(), channel_as >= 0);
    channel_ = std::move(process->channel);
    int status = 0;
    EXPECT_EQ(::waitpid(process->pid, &status, 0), process->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  Fd channel_;
};

TEST_F(SpawnTest, HasItsArgumentsAndNothingElse) {
  EXPECT_EQ(run("exit 7"), 7);
  EXPECT_EQ(
      run("set -- /proc/self/fd/*; for f; do n=${f##*/}; [ $n -gt 2 ] && [ -e $f ] && exit 9; done; exit 0"),
      0);
}

TEST_F(SpawnTest, HasTheDescriptorsUnderTheirNumbersAlsoWhenTheyCross) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  Fd reading(pipe[0]), writing(pipe[1]);
  Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  // Each goes where the other one is, wherever that happens to be.
  EXPECT_EQ(run("echo a >&7; echo b >&6", {{null.get(), 6}, {writing.get(), 7}}), 0);
  char text[8];
  EXPECT_EQ(::read(reading.get(), text, sizeof text), 2);
  EXPECT_EQ(text[0], 'a');
}

TEST_F(SpawnTest, SpeaksOnItsChannel) {
  EXPECT_EQ(run("printf hello >&4", {}, 4), 0);
  char text[16];
  EXPECT_EQ(::recv(channel_.get(), text, sizeof text, 0), 5);
}

TEST_F(SpawnTest, CannotGainPrivileges) {
  EXPECT_EQ(run("grep -q 'NoNewPrivs:.1' /proc/self/status && grep -q 'CapEff:.0*$' /proc/self/status"), 0);
}

TEST(ServerService, IsTheServerOfTheSettings) {
  Settings settings;
  settings.server_fd = 20;
  settings.listener_fd = 21;
  settings.service_uid = 60'700;
  settings.service_gid = 60'701;
  settings.server = {"osb", "--role=server"};
  ServiceSpec spec = server_service(settings);
  EXPECT_EQ(spec.name, "server");
  EXPECT_EQ(spec.uid, 60'700u);
  EXPECT_EQ(spec.gid, 60'701u);
  EXPECT_TRUE(spec.groups.empty());
  settings.engine_gid = 999;
  EXPECT_EQ(server_service(settings).groups, std::vector<gid_t>{999});
  settings.notes_fd = 22;
  ServiceSpec noted = server_service(settings);
  ASSERT_EQ(noted.descriptors.size(), 2u);
  EXPECT_EQ(noted.descriptors[1].descriptor, 22);
  EXPECT_EQ(noted.descriptors[1].as, kServerNotesFd);
  ASSERT_EQ(spec.descriptors.size(), 1u);
  EXPECT_EQ(spec.descriptors[0].descriptor, 21);
  EXPECT_EQ(spec.descriptors[0].as, kServerListenerFd);
  EXPECT_EQ(spec.channel_as, kServerLauncherFd);
  EXPECT_TRUE(spec.is_essential);
  EXPECT_FALSE(spec.verbs.contains(Verb::engine)) << "it has none";
  settings.engine_socket = "/run/engine.sock";
  ServiceSpec with_engine = server_service(settings);
  for (int i = 1; i <= static_cast<int>(kLastVerb); ++i)
    EXPECT_NE(with_engine.verbs.contains(static_cast<Verb>(i)), is_for_egress(static_cast<Verb>(i)));
  EXPECT_EQ(spec.environment, ServiceSpec::Environment::inherited);
}

TEST(EgressService, HasAnAccountAndVerbsOfItsOwn) {
  Settings settings;
  settings.server_fd = 20;
  settings.egress_fd = 22;
  settings.egress_uid = 60'800;
  settings.egress_gid = 60'801;
  settings.egress = {"osb-egress", "--log-level=INFO"};
  EgressDescriptors descriptors{Fd(::dup(0)), Fd(::dup(0))};
  ServiceSpec spec = egress_service(settings, descriptors, 25);
  EXPECT_EQ(spec.uid, 60'800u);
  EXPECT_EQ(spec.gid, 60'801u);
  EXPECT_EQ(spec.executable, 22);
  EXPECT_EQ(spec.arguments, settings.egress);
  EXPECT_EQ(spec.environment, ServiceSpec::Environment::empty);
  EXPECT_FALSE(spec.is_essential);
  for (int i = 1; i <= static_cast<int>(kLastVerb); ++i)
    EXPECT_EQ(spec.verbs.contains(static_cast<Verb>(i)), is_for_egress(static_cast<Verb>(i)));
}

}  // namespace
}  // namespace osb::launcher
