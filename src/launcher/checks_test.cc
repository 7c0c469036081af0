#include "launcher/checks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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

TEST(Checks, AnOrdinaryPlanPasses) {
  auto ok = check(
      plan({overlay("/"), overlay("/usr", {"/usr"}, "usr"), other(Step::Kind::proc, "/proc"),
            other(Step::Kind::bind, "/opt/x", "/srv/x"), other(Step::Kind::hostname, "", "", "sandbox")}));
  EXPECT_TRUE(ok) << ok.error().message;
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
      {"long host name", {overlay("/"), other(Kind::hostname, "", "", std::string(65, 'a'))}},
  };
  for (const auto& [name, steps] : table) {
    auto result = check(plan(steps));
    ASSERT_FALSE(result) << name;
    EXPECT_EQ(result.error().code, Code::permission_denied) << name;
  }
}

TEST(Checks, IdsAndLimitsAreChecked) {
  for (const char* id : {"", "x", "../../etc", "01900000-0000-7000-8000-00000000000G",
                         "01900000-0000-7000-8000-0000000000010"}) {
    Plan p = plan({overlay("/")});
    p.id = id;
    EXPECT_FALSE(check(p)) << id;
  }
  for (sys::CgroupLimits limits : {sys::CgroupLimits{.cpu_millis = 0}, sys::CgroupLimits{.memory_bytes = 1},
                                   sys::CgroupLimits{.pids = 0}, sys::CgroupLimits{.io_read_bytes = 0}}) {
    Plan p = plan({overlay("/")});
    p.limits = limits;
    EXPECT_FALSE(check(p));
  }
  for (int64_t bytes : {int64_t{0}, int64_t{4096}, int64_t{1} << 50}) {
    Plan p = plan({overlay("/")});
    p.disk_bytes = bytes;
    EXPECT_FALSE(check(p)) << bytes;
  }
  for (int64_t files : {int64_t{0}, int64_t{15}, int64_t{1} << 40}) {
    Plan p = plan({overlay("/")});
    p.open_files = files;
    EXPECT_FALSE(check(p)) << files;
  }
}

class Sources : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-checks-XXXXXX";
    top_ = ::mkdtemp(name);
    for (const char* dir :
         {"/state", "/state/images", "/state/images/x", "/state/db", "/shown", "/shown/in", "/hidden"}) {
      ::mkdir((top_ + dir).c_str(), 0755);
    }
    ASSERT_EQ(::symlink("../hidden", (top_ + "/shown/out").c_str()), 0);
    ASSERT_EQ(::symlink("in", (top_ + "/shown/link").c_str()), 0);
    settings_.state_dir = top_ + "/state";
    settings_.sources = {top_ + "/shown"};
  }
  void TearDown() override {
    for (const char* file : {"/shown/out", "/shown/link"}) ::unlink((top_ + file).c_str());
    for (const char* dir :
         {"/hidden", "/shown/in", "/shown", "/state/db", "/state/images/x", "/state/images", "/state", ""}) {
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

}  // namespace
}  // namespace osb::launcher
