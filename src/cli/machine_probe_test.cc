#include "cli/machine_probe.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <set>

namespace osb::cli {
namespace {

using ::testing::HasSubstr;

TEST(RunInChild, BringsBackWhatWasSeen) {
  EXPECT_EQ(*run_in_child([]() -> Result<std::string> { return "seen"; }), "seen");
  EXPECT_EQ(*run_in_child([]() -> Result<std::string> { return ""; }), "");
}

TEST(RunInChild, BringsBackErrorsWithTheirCode) {
  auto got = run_in_child([]() -> Result<std::string> { return fail_errno("mount", EPERM); });
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::permission_denied);
  EXPECT_EQ(got.error().message, "mount: Operation not permitted");
}

TEST(RunInChild, SurvivesACrash) {
  auto got = run_in_child([]() -> Result<std::string> {
    ::signal(SIGKILL, SIG_DFL);
    ::kill(::getpid(), SIGKILL);
    return "unreachable";
  });
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("died"));
}

TEST(RunInChild, ChangesStayInTheChild) {
  auto before = ::getpgrp();
  auto got = run_in_child([]() -> Result<std::string> {
    if (::chdir("/") < 0) return fail_errno("chdir");
    return std::to_string(::getpid());
  });
  EXPECT_NE(*got, std::to_string(::getpid()));
  EXPECT_EQ(::getpgrp(), before);
}

TEST(MachineProbe, EveryProbeSaysWhatFollowsAndHowToFixIt) {
  std::set<std::string> names;
  for (auto group : {host_probes(), mount_probes(), process_probes(), cgroup_probes(), network_probes(),
                     rootless_probes()}) {
    for (const Probe& probe : group) {
      EXPECT_TRUE(names.insert(probe.name).second) << probe.name << " twice";
      if (probe.run == host_probes()[0].run) continue;  // the kernel's version cannot be missing
      EXPECT_STRNE(probe.if_missing, "") << probe.name;
      EXPECT_STRNE(probe.remedy, "") << probe.name;
    }
  }
}

TEST(MachineAt, FindsTheFileSystemOfAMissingDirectory) {
  EXPECT_EQ(machine_at("/proc/self").work_dir, "/proc/self");
  EXPECT_EQ(machine_at("/usr/no/such/dir").work_dir, "/usr");
  EXPECT_EQ(machine_at("/no").work_dir, "/");
}

}  // namespace
}  // namespace osb::cli
