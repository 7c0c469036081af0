#include "launcher/runsc_bundle.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace osb::launcher {
namespace {

Step step(Step::Kind kind, std::string target) {
  Step out;
  out.kind = kind;
  out.target = std::move(target);
  return out;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST(RunscBundle, WholeDescriptionOfAPlainPlan) {
  Plan plan;
  plan.steps = {step(Step::Kind::overlay, "/")};
  std::string caps =
      R"(["CAP_CHOWN","CAP_DAC_OVERRIDE","CAP_FOWNER","CAP_FSETID","CAP_KILL","CAP_SETGID","CAP_SETUID","CAP_SETPCAP","CAP_SETFCAP","CAP_NET_BIND_SERVICE","CAP_SYS_CHROOT"])";
  EXPECT_EQ(
      runsc_config(plan, 0x70000000),
      R"({"ociVersion":"1.0.2","hostname":"sandbox","root":{"path":"/rootfs","readonly":false},)"
      R"("process":{"user":{"uid":0,"gid":0},"cwd":"/","env":[],"noNewPrivileges":true,)"
      R"("args":["/opt/opensandbox/boot/execd","--connections=0","--log-level=4"],)"
      R"("capabilities":{"bounding":)" +
          caps + R"(,"effective":)" + caps + R"(,"permitted":)" + caps +
          R"(}},"mounts":[)"
          R"({"destination":"/proc","type":"proc","source":"proc","options":["nosuid","nodev","noexec"]},)"
          R"({"destination":"/sys","type":"sysfs","source":"sysfs","options":["nosuid","nodev","noexec","ro"]},)"
          R"({"destination":"/dev","type":"tmpfs","source":"tmpfs","options":["nosuid","mode=755"]},)"
          R"({"destination":"/dev/pts","type":"devpts","source":"devpts","options":["nosuid","noexec","newinstance","mode=0620"]},)"
          R"({"destination":"/dev/shm","type":"tmpfs","source":"tmpfs","options":["nosuid","nodev","mode=1777","size=1073741824"]},)"
          R"({"destination":"/opt/opensandbox/boot","type":"bind","source":"/boot","options":["bind","ro","nosuid","nodev"]}],)"
          R"("linux":{"namespaces":[{"type":"pid"},{"type":"mount"},{"type":"ipc"},{"type":"uts"},{"type":"user"}],)"
          R"("uidMappings":[{"containerID":0,"hostID":1879048192,"size":65536}],)"
          R"("gidMappings":[{"containerID":0,"hostID":1879048192,"size":65536}],"resources":{}}})");
}

TEST(RunscBundle, VolumesScratchLimitsAndSeals) {
  Plan plan;
  plan.limits.memory_bytes = 1 << 28;
  plan.limits.cpu_millis = 500;
  plan.open_files = 64;
  Step shared = step(Step::Kind::bind, "/data \"x\"");
  shared.source = "/srv/x";
  shared.ids = Step::Ids::owner;
  shared.access = Step::Access::read_write;
  Step view = step(Step::Kind::bind, "/opt/tools");
  view.source = "/srv/tools";
  Step named = step(Step::Kind::volume, "/cache");
  named.source = "default/cache";
  plan.steps = {step(Step::Kind::overlay, "/"), view, step(Step::Kind::scratch, "/tmp"), shared, named,
                step(Step::Kind::seal, "/")};
  std::string text = runsc_config(plan, 1);
  EXPECT_TRUE(has(text, R"("root":{"path":"/rootfs","readonly":true})"));
  EXPECT_TRUE(has(text, R"({"destination":"/tmp","type":"tmpfs")"));
  EXPECT_TRUE(has(
      text,
      R"("destination":"/data \"x\"","type":"bind","source":"/volumes/0","options":["rbind","rw","nosuid","nodev"])"));
  EXPECT_TRUE(has(
      text,
      R"("destination":"/cache","type":"bind","source":"/volumes/1","options":["rbind","ro","nosuid","nodev"])"));
  EXPECT_FALSE(has(text, "/opt/tools")) << "a part of the root";
  EXPECT_TRUE(
      has(text, R"("resources":{"memory":{"limit":268435456},"cpu":{"period":100000,"quota":50000}})"));
  EXPECT_TRUE(has(text, "--work-open-files=64"));
}

TEST(RunscBundle, NothingOfTheHostsKernelIsMounted) {
  using Kind = Step::Kind;
  for (Kind kind : {Kind::proc, Kind::sysfs, Kind::devices, Kind::mask, Kind::read_only, Kind::scratch,
                    Kind::seal, Kind::show_limits})
    EXPECT_FALSE(is_for_runsc(kind)) << to_string(kind);
  for (Kind kind : {Kind::overlay, Kind::bind, Kind::volume, Kind::hostname})
    EXPECT_TRUE(is_for_runsc(kind)) << to_string(kind);
}

TEST(RunscBundle, ThePlatformIsNamed) {
  auto words = runsc_arguments("ptrace");
  EXPECT_EQ(words.front(), "runsc");
  EXPECT_EQ(words.back(), "sandbox");
  EXPECT_NE(std::ranges::find(words, "--platform=ptrace"), words.end());
}

}  // namespace
}  // namespace osb::launcher
