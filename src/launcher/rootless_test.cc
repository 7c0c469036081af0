#include "launcher/rootless.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "launcher/settings.h"
#include "sys/process.h"

namespace osb::launcher {
namespace {

constexpr char kId[] = "01890000-0000-7000-8000-000000000001";

class Notes : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "notes-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    state = name;
    std::filesystem::create_directories(state + "/" + state::kSandboxes + "/" + kId);
  }
  void TearDown() override { std::filesystem::remove_all(state); }
  void write(const std::string& note) {
    std::string path = state + "/" + state::kSandboxes + "/" + kId + "/process";
    ASSERT_TRUE(write_file(path, note, O_CREAT | O_TRUNC));
  }
  std::string state;
};

TEST_F(Notes, LeadToTheProcess) {
  ASSERT_TRUE(record_process(state, kId, ::getpid()));
  auto found = recorded_process(state, kId);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(sys::pid_of(found->get()).value_or(0), ::getpid());
}

TEST_F(Notes, AreWrittenOnce) {
  ASSERT_TRUE(record_process(state, kId, ::getpid()));
  EXPECT_FALSE(record_process(state, kId, ::getpid()));
}

TEST_F(Notes, DoNotLeadToAnotherProcessWithTheNumber) {
  std::string ticks = std::to_string(sys::process_start_ticks(::getpid()).value_or(0));
  std::string boot = sys::boot_id().value_or("");
  std::string pid = std::to_string(::getpid());
  write(pid + " " + ticks + " " + boot);
  EXPECT_TRUE(recorded_process(state, kId));
  write(pid + " " + ticks + "1 " + boot);
  EXPECT_FALSE(recorded_process(state, kId)) << "another start time";
  write(pid + " " + ticks + " another-boot");
  EXPECT_FALSE(recorded_process(state, kId));
}

TEST_F(Notes, WithoutMeaningLeadNowhere) {
  EXPECT_FALSE(recorded_process(state, kId)) << "none";
  std::string boot = sys::boot_id().value_or("");
  for (const char* start : {"", " ", "1 1 ", "-1 5 ", "0 5 ", "x 5 ", "12 x ", "99999999999 5 ", "5 "}) {
    write(start + boot);
    EXPECT_FALSE(recorded_process(state, kId)) << start;
  }
}

TEST(Gate, OpensOnlyForWhatIsOnRecord) {
  auto open = Gate::create();
  ASSERT_TRUE(open);
  ASSERT_TRUE(open->pass({}));
  EXPECT_EQ(wait_until_recorded(open->wait.get(), open->open.release()), 0);

  auto closed = Gate::create();
  ASSERT_TRUE(closed);
  EXPECT_FALSE(closed->pass(fail(Code::internal, "no room")));
  EXPECT_EQ(wait_until_recorded(closed->wait.get(), closed->open.release()), -ECANCELED);
}

TEST(Enforceable, KeepsWhatHasAController) {
  sys::CgroupLayout layout;
  layout.memory = {sys::Controller::Version::v2, "/g"};
  auto kept = enforceable({.cpu_millis = 1000, .memory_bytes = 1 << 30, .pids = 64}, layout);
  EXPECT_FALSE(kept.cpu_millis);
  EXPECT_EQ(kept.memory_bytes, 1 << 30);
  EXPECT_FALSE(kept.pids);
}

TEST(Settings, AnEgressProcessHasAProgram) {
  Settings settings;
  settings.state_dir = "/var/lib/opensandbox";
  settings.server = {"osb", "server"};
  settings.listener_fd = 3, settings.server_fd = 4, settings.execd_fd = 5;
  settings.egress = {"osb-egress"};
  EXPECT_FALSE(from_arguments(to_arguments(settings)));
  settings.egress_fd = 6, settings.egress_uid = 60'800;
  settings.engine_gid = 999;
  settings.notes_fd = 7;
  auto back = from_arguments(to_arguments(settings));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->engine_gid, 999u);
  EXPECT_EQ(back->notes_fd, 7);
  EXPECT_EQ(back->egress_fd, 6);
  EXPECT_EQ(back->egress_uid, 60'800u);
  settings.egress.clear();
  settings.egress_fd = -1;
  back = from_arguments(to_arguments(settings));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->egress_fd, -1);
}

TEST(Settings, OfAServiceWithoutRootSurvive) {
  Settings settings;
  settings.state_dir = "/home/ann/.local/state/opensandbox";
  settings.server = {"osb", "server"};
  settings.listener_fd = 3, settings.server_fd = 4, settings.execd_fd = 5;
  settings.rootless = true;
  settings.runtime_dir = "/run/user/1000";
  auto back = from_arguments(to_arguments(settings));
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->rootless);
  EXPECT_EQ(back->runtime_dir, "/run/user/1000");
  EXPECT_FALSE(back->engine_only);
  settings.rootless = false;
  settings.engine_only = true;
  EXPECT_FALSE(from_arguments(to_arguments(settings))->rootless);
  EXPECT_TRUE(from_arguments(to_arguments(settings))->engine_only);
}

}  // namespace
}  // namespace osb::launcher
