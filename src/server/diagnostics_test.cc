#include "server/diagnostics.h"

#include <gtest/gtest.h>

#include "server/fake_runtime.h"
#include "server/test_loop.h"

namespace osb::server {
namespace {

TEST(Diagnostics, LogsAreTheLastLinesSinceATime) {
  sandbox::Output output{"2026-01-02T03:04:05Z a\n2026-01-02T03:04:06Z b\n2026-01-02T03:04:07.5Z c\n", false};
  EXPECT_EQ(select_logs(output, 100).text, output.text);
  EXPECT_FALSE(select_logs(output, 3).truncated);
  EXPECT_EQ(select_logs(output, 1).text, "2026-01-02T03:04:07.5Z c\n");
  EXPECT_TRUE(select_logs(output, 1).truncated);
  EXPECT_EQ(select_logs(output, 100, *parse_time("2026-01-02T03:04:06Z")).text,
            "2026-01-02T03:04:06Z b\n2026-01-02T03:04:07.5Z c\n");
  EXPECT_EQ(select_logs(output, 100, *parse_time("2027-01-02T03:04:06Z")).text, "(no logs)");
  EXPECT_TRUE(select_logs({"", true}, 1).truncated);
}

TEST(Diagnostics, SinceIsForgiving) {
  WallTime now = *parse_time("2026-01-02T12:00:00Z");
  auto ago = [&](std::string_view text) {
    return std::chrono::duration_cast<std::chrono::seconds>(now - parse_since(text, now)).count();
  };
  EXPECT_EQ(ago("30s"), 30);
  EXPECT_EQ(ago("5m"), 300);
  EXPECT_EQ(ago("2h"), 7200);
  EXPECT_EQ(ago("1d"), 86400);
  for (const char* text : {"", "m", "x", "5", "-5m", "5w", "99999999999999999999d", "1.5h"})
    EXPECT_EQ(ago(text), 600) << text;
}

class Tier : public FakeRuntime {
 public:
  using FakeRuntime::FakeRuntime;
  runtime::Isolation isolation() const override {
    return {"root service", {"io is limited through version 1"}};
  }
};

TEST(Diagnostics, InspectNamesTheTierAndWhatIsLackingOrRefused) {
  TestLoop loop;
  Tier runtime(loop.executor(), testkit::answer_inside);
  runtime.abilities.disk = runtime::Ability::cannot("no loop devices");
  runtime.abilities.cpu = runtime::Ability::without_effect("not delegated");
  sandbox::Sandbox row;
  row.id = "x";
  std::string text = inspect_text(row, runtime);
  EXPECT_NE(text.find("isolation     root service\n  lacking     io is limited"), std::string::npos) << text;
  EXPECT_NE(text.find("  refused     resourceLimits.disk: no loop devices\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  no effect   resourceLimits.cpu: not delegated\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("resourceLimits.memory"), std::string::npos) << text;
  loop.await(runtime.close());
}

}  // namespace
}  // namespace osb::server
