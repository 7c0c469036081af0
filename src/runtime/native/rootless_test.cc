#include "runtime/native/rootless.h"

#include <gmock/gmock.h>

#include "runtime/native/native_capabilities.h"

namespace osb::runtime {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(RootlessIsolation, NamesWhatIsLost) {
  Isolation one = rootless_isolation({.ids = 1, .sets_groups = false});
  EXPECT_THAT(one.tier, HasSubstr("rootless"));
  for (const char* loss : {"cpu and memory not limited", "RLIMIT_NPROC", "pause and resume", "disk",
                           "the service's user outside", "not idmapped", "imported", "only user and group 0",
                           "supplementary groups"}) {
    EXPECT_THAT(one.missing, Contains(HasSubstr(loss)));
  }
}

TEST(RootlessIsolation, DoesNotNameWhatNewuidmapGives) {
  Isolation all = rootless_isolation({.ids = 0x1'0000, .sets_groups = true});
  EXPECT_THAT(all.missing, Not(Contains(HasSubstr("exist inside"))));
  EXPECT_THAT(all.missing, Not(Contains(HasSubstr("supplementary groups"))));
  EXPECT_THAT(all.missing, Contains(HasSubstr("the service's user outside")));
  Isolation some = rootless_isolation({.ids = 1001, .sets_groups = true});
  EXPECT_THAT(some.missing, Contains(HasSubstr("below 1001 exist inside")));
}

TEST(RootlessIsolation, DoesNotNameWhatDelegatedGroupsGive) {
  RootlessFacts facts = RootlessFacts::read("freeze,memory");
  EXPECT_TRUE(facts.freezes && facts.limits_memory);
  EXPECT_FALSE(facts.limits_cpu || facts.limits_pids);
  Isolation some = rootless_isolation(facts);
  EXPECT_THAT(some.missing, Not(Contains(HasSubstr("pause"))));
  EXPECT_THAT(some.missing, Contains(HasSubstr("cpu not limited")));
  EXPECT_THAT(some.missing, Contains(HasSubstr("RLIMIT_NPROC")));
  Isolation all = rootless_isolation(RootlessFacts::read("freeze,cpu,memory,pids"));
  for (const char* gone : {"pause", "not limited", "RLIMIT_NPROC", "lack of memory"})
    EXPECT_THAT(all.missing, Not(Contains(HasSubstr(gone)))) << gone;
  RootlessFacts none = RootlessFacts::read("");
  EXPECT_FALSE(none.freezes || none.limits_cpu || none.limits_memory || none.limits_pids);
}

TEST(RootlessLimits, WhatIsAskedForAndCannotBeIsRefused) {
  Capabilities capabilities = rootless_capabilities({});
  auto refused = [&](Limits limits) {
    SandboxSpec spec;
    spec.limits = limits;
    auto found = obstacle(spec, capabilities);
    return found ? found->field + ": " + found->why : "";
  };
  EXPECT_EQ(refused({}), "");
  // Every client sends these two.
  EXPECT_EQ(refused({.cpu_millis = 1000, .memory_bytes = 1 << 30}), "");
  EXPECT_EQ(refused({.pids = 100, .open_files = 100}), "");
  EXPECT_THAT(refused({.disk_bytes = 1 << 30}), HasSubstr("resourceLimits.disk"));
  EXPECT_THAT(refused({.io_read_bytes = 1 << 20}), HasSubstr("resourceLimits.io-read"));
  EXPECT_THAT(refused({.io_write_bytes = 1 << 20}), HasSubstr("resourceLimits.io-write"));
}

}  // namespace
}  // namespace osb::runtime
