#include "runtime/capabilities.h"

#include <gmock/gmock.h>

#include "runtime/native/native_capabilities.h"
#include "runtime/runtimes.h"

namespace osb::runtime {
namespace {

using testing::HasSubstr;

TEST(Capabilities, WithoutAWordNothingCanBeDone) {
  Capabilities none;
  for (const auto& [name, ability] : abilities_of(none)) EXPECT_FALSE(ability) << name;
  SandboxSpec spec;
  EXPECT_FALSE(obstacle(spec, none)) << "and whoever asks for nothing is not refused";
}

TEST(Capabilities, EachPartOfASpecIsRefusedByItsName) {
  auto refused = [](auto change) {
    SandboxSpec spec;
    change(spec);
    auto found = obstacle(spec, Capabilities());
    return found ? found->field : "";
  };
  EXPECT_EQ(refused([](SandboxSpec& s) { s.limits.cpu_millis = 1; }), "resourceLimits.cpu");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.limits.memory_bytes = 1; }), "resourceLimits.memory");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.limits.pids = 1; }), "resourceLimits.pids");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.limits.disk_bytes = 1; }), "resourceLimits.disk");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.limits.io_read_bytes = 1; }), "resourceLimits.io-read");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.limits.io_write_bytes = 1; }), "resourceLimits.io-write");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.limits.open_files = 1; }), "resourceLimits.nofile");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.limits.gpus = sandbox::kAllGpus; }), "resourceLimits.gpu");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.image.platform = "linux/riscv64"; }), "platform");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.mounts.push_back({"a", "/a"}); }), "volumes");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.network.emplace(); }), "networkPolicy");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.image.pull = ImageRequest::Pull::always; }), "image");
  EXPECT_EQ(refused([](SandboxSpec& s) { s.image.auth = Credentials{"u", "p"}; }), "")
      << "credentials for an image that is here already hurt nobody";
}

TEST(Capabilities, ANumberMayBeTooLarge) {
  Capabilities some;
  some.open_files = Ability::at_most(1024, "the hard limit of the service on this host");
  SandboxSpec spec;
  spec.limits.open_files = 1024;
  EXPECT_FALSE(obstacle(spec, some));
  spec.limits.open_files = 1025;
  EXPECT_EQ(obstacle(spec, some)->why, "must be at most 1024, the hard limit of the service on this host");
}

TEST(Capabilities, OfAHostWithoutControllers) {
  Capabilities bare = native_capabilities({});
  EXPECT_THAT(bare.cpu.why, HasSubstr("no cgroup controller"));
  EXPECT_FALSE(bare.memory);
  EXPECT_THAT(bare.io_write.why, HasSubstr("version 2"));
  EXPECT_TRUE(bare.pause);
  EXPECT_TRUE(bare.volumes);
  EXPECT_EQ(bare.platforms.size(), 1u);
  std::string text = to_text(bare);
  EXPECT_THAT(text, HasSubstr("can: "));
  EXPECT_THAT(text, HasSubstr("cannot: resourceLimits.cpu: this host has no cgroup controller for it\n"));
}

TEST(Capabilities, WithoutRootWhatEveryClientSendsHasNoEffect) {
  Capabilities none = rootless_capabilities({});
  EXPECT_EQ(none.cpu.kind, Ability::Kind::unenforced);
  EXPECT_EQ(none.memory.kind, Ability::Kind::unenforced);
  EXPECT_FALSE(none.pause);
  Capabilities delegated = rootless_capabilities(RootlessFacts::read("freeze,cpu,memory,pids"));
  EXPECT_EQ(delegated.memory.kind, Ability::Kind::yes);
  EXPECT_TRUE(delegated.pause);
}

}  // namespace
}  // namespace osb::runtime
