#include "cli/doctor.h"

#include <gmock/gmock.h>

namespace osb::cli {
namespace {

using ::testing::HasSubstr;

Result<std::string> nothing(const Machine&) { return ""; }
constexpr Probe kRoot{"root", Need::required, nothing, "no launcher", "be root"};
constexpr Probe kOverlay{"overlayfs", Need::required, nothing, "no layer", "modprobe overlay"};
constexpr Probe kLandlock{"landlock", Need::wanted, nothing, "one layer fewer", "boot with it"};
constexpr Probe kReflink{"reflink copies", Need::note, nothing, "bytes are copied", "use xfs"};

Finding good(const Probe& probe) { return {&probe, std::string("seen")}; }
Finding bad(const Probe& probe, int error) { return {&probe, fail_errno("try", error)}; }

TEST(Diagnose, AllGood) {
  auto d = diagnose({good(kRoot), good(kOverlay)}, true);
  EXPECT_TRUE(d.can_run);
  EXPECT_EQ(d.text,
            "ok       root                         seen\n"
            "ok       overlayfs                    seen\n"
            "\nSandboxes can run here.\n");
}

TEST(Diagnose, RequiredMissingSaysWhatFollowsAndTheRemedy) {
  auto d = diagnose({good(kRoot), bad(kOverlay, ENODEV)}, true);
  EXPECT_FALSE(d.can_run);
  EXPECT_THAT(d.text, HasSubstr("MISSING  overlayfs                    try: No such device; so: no layer; "
                                "fix: modprobe overlay\n"));
  EXPECT_THAT(d.text, HasSubstr("cannot run here: overlayfs missing"));
}

TEST(Diagnose, WantedOnlyWeakens) {
  auto d = diagnose({bad(kLandlock, ENOSYS), bad(kReflink, EOPNOTSUPP)}, true);
  EXPECT_TRUE(d.can_run);
  EXPECT_THAT(d.text, HasSubstr("with less than they could have: landlock."));
  EXPECT_THAT(d.text, HasSubstr("no       reflink copies"));
}

TEST(Diagnose, WithoutRootAPermissionErrorProvesNothing) {
  auto d = diagnose({bad(kOverlay, EPERM)}, false);
  EXPECT_FALSE(d.can_run);
  EXPECT_THAT(d.text, HasSubstr("untried  overlayfs"));
  EXPECT_THAT(d.text, HasSubstr("sudo osb doctor"));
  EXPECT_THAT(diagnose({bad(kOverlay, EPERM)}, true).text, HasSubstr("MISSING"));
  EXPECT_THAT(diagnose({bad(kRoot, EPERM)}, false).text, HasSubstr("MISSING  root"));
  EXPECT_THAT(diagnose({bad(kOverlay, ENODEV)}, false).text, HasSubstr("MISSING  overlayfs"));
}

TEST(Diagnose, WithoutRootTheTierWithoutRootWillDo) {
  constexpr Probe kRootless{kRootlessProbe, Need::note, nothing, "only root", "allow it"};
  auto d = diagnose({bad(kRoot, EPERM), bad(kOverlay, EPERM), good(kRootless)}, false);
  EXPECT_TRUE(d.can_run);
  EXPECT_THAT(d.text, HasSubstr("weaker   root"));
  EXPECT_THAT(d.text, HasSubstr("untried  overlayfs"));
  EXPECT_THAT(d.text, HasSubstr("can run here without root"));
  EXPECT_FALSE(diagnose({bad(kRoot, EPERM), bad(kRootless, EPERM)}, false).can_run);
  // Root that lacks something is not helped by it.
  EXPECT_FALSE(diagnose({bad(kRoot, EPERM), good(kRootless)}, true).can_run);
  EXPECT_FALSE(diagnose({bad(kOverlay, ENODEV), good(kRootless)}, false).can_run);
}

TEST(Describe, ALineForEachThingThatCanBeAskedFor) {
  runtime::Capabilities can;
  can.cpu = runtime::Ability::can();
  can.open_files = runtime::Ability::at_most(512, "the hard limit");
  can.disk = runtime::Ability::cannot("no loop devices");
  std::string text = describe(can);
  EXPECT_THAT(text, HasSubstr("ok       resourceLimits.cpu           sandboxes can have it\n"));
  EXPECT_THAT(text, HasSubstr("ok       resourceLimits.nofile        at most 512, the hard limit\n"));
  EXPECT_THAT(text, HasSubstr("no       resourceLimits.disk          no loop devices\n"));
}

}  // namespace
}  // namespace osb::cli
