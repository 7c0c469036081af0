#include "launcher/checks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/system_steps.h"

namespace osb::launcher {
namespace {

Step overlay(std::string target, std::vector<std::string> lowers = {"/layer"}, std::string name = "root") {
  Step s;
  s.kind = Step::Kind::overlay;
  s.target = std::move(target);
  s.lowers = std::move(lowers);
  s.name = std::move(name);
  return s;
}
Step other(Step::Kind kind, std::string target, std::string source = "", std::string name = "") {
  Step s;
  s.kind = kind;
  s.target = std::move(target);
  s.source = std::move(source);
  s.name = std::move(name);
  return s;
}
Plan plan(std::vector<Step> steps) {
  Plan p;
  p.id = "01900000-0000-7000-8000-000000000001";
  p.steps = std::move(steps);
  return p;
}

// `before`, the system's steps, `after`.
std::vector<Step> around(std::vector<Step> before, const std::vector<Step>& after = {}) {
  before.insert(before.end(), system_steps().begin(), system_steps().end());
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

TEST(Checks, AnOrdinaryPlanPasses) {
  using Kind = Step::Kind;
  auto ok = check(plan(around({overlay("/"), overlay("/usr", {"/usr"}, "usr"),
                               other(Kind::bind, "/opt/x", "/srv/x"), other(Kind::scratch, "/tmp")},
                              {other(Kind::show_limits, ""), other(Kind::hostname, "", "", "sandbox"),
                               other(Kind::seal, "/usr"), other(Kind::seal, "/")})));
  EXPECT_TRUE(ok) << ok.error().message;
  EXPECT_TRUE(check(plan(around({overlay("/")}))));
}

TEST(Checks, TheSystemsStepsCannotBeLeftOutMovedOrRepeated) {
  const std::vector<Step> whole = around({overlay("/")}, {other(Step::Kind::hostname, "", "", "sandbox")});
  ASSERT_TRUE(check(plan(whole)));
  for (size_t i = 0; i < whole.size() - 1; ++i) {
    auto without = whole;
    without.erase(without.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_FALSE(check(plan(without))) << to_text(whole[i]);
    auto twice = whole;
    twice.insert(twice.begin() + static_cast<ptrdiff_t>(i), whole[i]);
    EXPECT_FALSE(check(plan(twice))) << to_text(whole[i]);
    auto late = whole;
    std::rotate(late.begin() + static_cast<ptrdiff_t>(i), late.begin() + static_cast<ptrdiff_t>(i) + 1,
                late.end());
    EXPECT_FALSE(check(plan(late))) << to_text(whole[i]);
    auto elsewhere = whole;
    elsewhere[i].target = "/elsewhere";
    EXPECT_FALSE(check(plan(elsewhere))) << to_text(whole[i]);
  }
}

TEST(Checks, NothingComesToLieOverTheSystemsTrees) {
  using Kind = Step::Kind;
  for (const char* target :
       {"/", "/proc", "/sys", "/dev", "/proc/self", "/sys/fs/cgroup", "/dev/shm", "/dev/null"}) {
    for (const Step& step : {overlay(target, {"/usr"}, "more"), other(Kind::bind, target, "/usr"),
                             other(Kind::scratch, target)}) {
      EXPECT_FALSE(check(plan(around({overlay("/"), step})))) << to_text(step);
      EXPECT_FALSE(check(plan(around({overlay("/")}, {step})))) << to_text(step);
    }
  }
  // Names that only look like them.
  EXPECT_TRUE(check(plan(around({overlay("/"), other(Kind::bind, "/devices", "/usr")}))));
  // Over anything, when they are there already: the image could have a link to them.
  for (const Step& step :
       {overlay("/opt", {"/usr"}, "opt"), other(Kind::bind, "/opt", "/usr"), other(Kind::scratch, "/tmp"),
        other(Kind::mask, "/opt"), other(Kind::read_only, "/opt"), other(Kind::devices, "/opt"),
        other(Kind::proc, "/opt"), other(Kind::sysfs, "/opt")}) {
    EXPECT_FALSE(check(plan(around({overlay("/")}, {step})))) << to_text(step);
  }
}

TEST(Checks, RepeatedNamesAndForeignSealsAreRefused) {
  using Kind = Step::Kind;
  std::vector<std::string> many(200, "/usr");
  for (const auto& steps :
       {around({overlay("/"), overlay("/usr", {"/usr"}, "usr"), overlay("/usr", {"/usr"}, "more")}),
        around({overlay("/"), overlay("/usr", {"/usr"}, "root")}),
        around({overlay("/"), other(Kind::scratch, "/tmp"), other(Kind::bind, "/tmp", "/usr")}),
        around({overlay("/", many), overlay("/usr", many, "usr")}),
        around({overlay("/")}, {other(Kind::seal, "/proc")}),
        around({overlay("/")}, {other(Kind::seal, "/"), other(Kind::seal, "/")}),
        around({overlay("/")}, {other(Kind::seal, "/"), other(Kind::hostname, "", "", "sandbox")}),
        around({overlay("/")}, {other(Kind::hostname, "", "", "a"), other(Kind::hostname, "", "", "a")})}) {
    auto result = check(plan(steps));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::permission_denied);
  }
}

TEST(Checks, WhatIsRefused) {
  using Kind = Step::Kind;
  const std::vector<std::pair<const char*, std::vector<Step>>> table = {
      {"nothing", {}},
      {"no root first", {other(Kind::proc, "/proc")}},
      {"two roots", {overlay("/"), overlay("/")}},
      {"no layers", {overlay("/", {})}},
      {"relative layer", {overlay("/", {"usr"})}},
      {"layer with ..", {overlay("/", {"/usr/../etc"})}},
      {"layer with //", {overlay("/", {"/usr//lib"})}},
      {"layer with a NUL", {overlay("/", {std::string("/usr\0x", 6)})}},
      {"layer name with a slash", {overlay("/", {"/usr"}, "a/b")}},
      {"layer name with dots", {overlay("/", {"/usr"}, "..")}},
      {"empty layer name", {overlay("/", {"/usr"}, "")}},
      {"relative target", {overlay("/"), other(Kind::proc, "proc")}},
      {"target with ..", {overlay("/"), other(Kind::proc, "/../proc")}},
      {"target with .", {overlay("/"), other(Kind::mask, "/./proc")}},
      {"empty target", {overlay("/"), other(Kind::mask, "")}},
      {"target with a trailing slash", {overlay("/"), other(Kind::mask, "/proc/")}},
      {"bind over the root", {overlay("/"), other(Kind::bind, "/x", "")}},
      {"bind of a relative path", {overlay("/"), other(Kind::bind, "/x", "etc")}},
      {"bind of ..", {overlay("/"), other(Kind::bind, "/x", "/etc/..")}},
      {"source where none belongs", {overlay("/"), other(Kind::proc, "/proc", "/etc")}},
      {"layers where none belong",
       {overlay("/"),
        [] {
          Step s = other(Kind::proc, "/proc");
          s.lowers = {"/etc"};
          return s;
        }()}},
      {"host name with a slash", {overlay("/"), other(Kind::hostname, "", "", "a/b")}},
      {"empty host name", {overlay("/"), other(Kind::hostname, "", "", "")}},
      {"huge target", {overlay("/"), other(Kind::scratch, "/" + std::string(100'000, 'a'))}},
      {"name where none belongs", {overlay("/"), other(Kind::scratch, "/tmp", "", "x")}},
      {"long host name", {overlay("/"), other(Kind::hostname, "", "", std::string(65, 'a'))}},
  };
  for (const auto& [name, steps] : table) {
    for (const auto& all : {steps, around(steps)}) {
      auto result = check(plan(all));
      ASSERT_FALSE(result) << name;
      EXPECT_EQ(result.error().code, Code::permission_denied) << name;
      EXPECT_LT(result.error().message.size(), 500u) << name;
    }
  }
}

TEST(Checks, IdsAndLimitsAreChecked) {
  for (const char* id : {"", "x", "../../etc", "01900000-0000-7000-8000-00000000000G",
                         "01900000-0000-7000-8000-0000000000010"}) {
    Plan p = plan(around({overlay("/")}));
    p.id = id;
    EXPECT_FALSE(check(p)) << id;
  }
  for (const sys::CgroupLimits& limits :
       {sys::CgroupLimits{.cpu_millis = 0}, sys::CgroupLimits{.memory_bytes = 1},
        sys::CgroupLimits{.pids = 0}, sys::CgroupLimits{.io_read_bytes = 0}}) {
    Plan p = plan(around({overlay("/")}));
    p.limits = limits;
    EXPECT_FALSE(check(p));
  }
  for (int64_t bytes : {int64_t{0}, int64_t{4096}, int64_t{1} << 50}) {
    Plan p = plan(around({overlay("/")}));
    p.disk_bytes = bytes;
    EXPECT_FALSE(check(p)) << bytes;
  }
  for (int64_t files : {int64_t{0}, int64_t{15}, int64_t{1} << 40}) {
    Plan p = plan(around({overlay("/")}));
    p.open_files = files;
    EXPECT_FALSE(check(p)) << files;
  }
}

TEST(Checks, WhatIsNotMadeYetIsRefusedByItsName) {
  Step bind = other(Step::Kind::bind, "/data", "/volumes/a");
  bind.access = Step::Access::read_write;
  EXPECT_TRUE(check(plan(around({overlay("/"), bind}))))
      << "where it comes from is looked at when it is opened";
  auto refusal = [](const Plan& p) {
    auto checked = check(p);
    EXPECT_FALSE(checked);
    return checked ? "" : checked.error().message;
  };
  Step owned = bind, limited = bind;
  owned.ids = Step::Ids::owner;
  limited.size_bytes = 1 << 20;
  EXPECT_NE(refusal(plan(around({overlay("/"), owned}))).find("map ids"), std::string::npos);
  EXPECT_NE(refusal(plan(around({overlay("/"), limited}))).find("limit the size"), std::string::npos);
  Plan connected = plan(around({overlay("/")}));
  connected.network = {PlanNetwork::Kind::policy, "web"};
  EXPECT_NE(refusal(connected).find("network policy \"web\""), std::string::npos);
  connected.network.policy = std::string(100'000, 'x');
  EXPECT_LT(refusal(connected).size(), 500u);
  connected.network = {PlanNetwork::Kind::none, "web"};
  EXPECT_FALSE(check(connected));
  connected.network = {PlanNetwork::Kind::policy, ""};
  EXPECT_TRUE(check(connected));
}

TEST(Checks, OnlyABindHasAccessIdsAndSize) {
  for (const Step& step : {overlay("/opt", {"/usr"}, "opt"), other(Step::Kind::scratch, "/tmp")}) {
    Step writable = step, owned = step, limited = step;
    writable.access = Step::Access::read_write;
    owned.ids = Step::Ids::owner;
    limited.size_bytes = 1;
    for (const Step& wrong : {writable, owned, limited})
      EXPECT_FALSE(check(plan(around({overlay("/"), wrong})))) << to_text(wrong);
  }
}

class Sources : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-checks-XXXXXX";
    top_ = ::mkdtemp(name);
    for (const char* dir : {"/state", "/state/images", "/state/images/x", "/state/db", "/shown", "/shown/in",
                            "/hidden", "/volumes", "/volumes/a", "/volumes/a/b"}) {
      ::mkdir((top_ + dir).c_str(), 0755);
    }
    ASSERT_EQ(::symlink("../hidden", (top_ + "/shown/out").c_str()), 0);
    ASSERT_EQ(::symlink("in", (top_ + "/shown/link").c_str()), 0);
    settings_.state_dir = top_ + "/state";
    settings_.sources = {top_ + "/shown"};
    ASSERT_EQ(::chmod((top_ + "/volumes").c_str(), 0700), 0);
    ASSERT_EQ(::symlink("a", (top_ + "/volumes/link").c_str()), 0);
    ASSERT_EQ(::symlink("../hidden", (top_ + "/volumes/out").c_str()), 0);
    ASSERT_TRUE(write_file(top_ + "/volumes/file", "", O_CREAT));
    settings_.volume_dirs = {top_ + "/volumes"};
  }
  void TearDown() override {
    for (const char* file : {"/shown/out", "/shown/link", "/volumes/link", "/volumes/out", "/volumes/file"})
      ::unlink((top_ + file).c_str());
    for (const char* dir : {"/volumes/a/b", "/volumes/a", "/volumes", "/hidden", "/shown/in", "/shown",
                            "/state/db", "/state/images/x", "/state/images", "/state", ""}) {
      ::rmdir((top_ + dir).c_str());
    }
  }
  std::string top_;
  Settings settings_;
};

TEST_F(Sources, OnlyWhatTheSettingsName) {
  for (const char* path : {"/shown", "/shown/in", "/state/images/x"}) {
    auto opened = open_source(settings_, top_ + path);
    EXPECT_TRUE(opened) << path;
  }
  for (const char* path : {"/hidden", "/shown/out", "/shown/link", "/shown/../hidden", "/shownmore", "/state",
                           "/state/db", "/state/images", ""}) {
    EXPECT_FALSE(open_source(settings_, top_ + path)) << path;
  }
  EXPECT_FALSE(open_source(settings_, "/"));
  EXPECT_FALSE(open_source(settings_, "/etc"));
}

TEST_F(Sources, OnlyVolumesCanBeWritten) {
  auto bind = [&](const std::string& path, Step::Access access) {
    Step step = other(Step::Kind::bind, "/data", top_ + path);
    step.access = access;
    return open_bind(settings_, step);
  };
  using enum Step::Access;
  for (const char* path : {"/volumes/a", "/volumes/a/b"}) {
    EXPECT_TRUE(bind(path, read_write)) << path;
    EXPECT_TRUE(bind(path, read_only)) << path;
  }
  EXPECT_TRUE(bind("/shown/in", read_only));
  // Sources to be shown, the place of all volumes, links, files, and what is not there.
  for (const char* path :
       {"/shown", "/shown/in", "/state/images/x", "/hidden", "/volumes", "/volumes/link", "/volumes/link/b",
        "/volumes/out", "/volumes/file", "/volumes/none", "/volumesmore", "/volumes/../hidden", ""}) {
    EXPECT_FALSE(bind(path, read_write)) << path;
  }
  EXPECT_FALSE(bind("/volumes", read_only));
  settings_.volume_dirs.clear();
  EXPECT_FALSE(bind("/volumes/a", read_write));
  EXPECT_FALSE(bind("/volumes/a", read_only));
}

TEST_F(Sources, APlaceForVolumesIsRootsAlone) {
  for (mode_t mode : {0711, 0755, 0770, 0701}) {
    ASSERT_EQ(::chmod((top_ + "/volumes").c_str(), mode), 0);
    auto opened = open_volume(settings_, top_ + "/volumes/a");
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("0700"), std::string::npos);
  }
}

}  // namespace
}  // namespace osb::launcher
