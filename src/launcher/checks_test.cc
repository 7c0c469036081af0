#include "launcher/checks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/host_paths.h"
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

TEST(Checks, APolicyWithANameIsRefused) {
  auto refusal = [](const Plan& p) {
    auto checked = check(p);
    EXPECT_FALSE(checked);
    return checked ? "" : checked.error().message;
  };
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

TEST(Checks, OnlyVolumesCanBeWritten) {
  using Kind = Step::Kind;
  Step shared = other(Kind::bind, "/data", "/srv/data"), named = other(Kind::volume, "/data", "default/a");
  shared.ids = Step::Ids::owner;
  for (Step* step : {&shared, &named}) {
    EXPECT_TRUE(check(plan(around({overlay("/"), *step}))));
    EXPECT_TRUE(check_volume(*step));
    step->access = Step::Access::read_write;
    EXPECT_TRUE(check(plan(around({overlay("/"), *step})))) << to_text(*step);
    EXPECT_TRUE(check_volume(*step));
  }
  for (const Step& step : {overlay("/opt", {"/usr"}, "opt"), other(Kind::scratch, "/tmp"),
                           other(Kind::bind, "/data", "/srv/data")}) {
    Step writable = step;
    writable.access = Step::Access::read_write;
    EXPECT_FALSE(check(plan(around({overlay("/"), writable})))) << to_text(writable);
    EXPECT_FALSE(check_volume(writable)) << to_text(writable);
    EXPECT_FALSE(check_volume(step)) << to_text(step);
  }
  for (const Step& step : {overlay("/opt", {"/usr"}, "opt"), other(Kind::scratch, "/tmp"), named}) {
    Step owned = step;
    owned.ids = Step::Ids::owner;
    EXPECT_FALSE(check(plan(around({overlay("/"), owned})))) << to_text(owned);
  }
}

TEST(Checks, AVolumeHasANameAndAPlace) {
  auto named = [](std::string source, std::string target = "/data") {
    return other(Step::Kind::volume, std::move(target), std::move(source));
  };
  for (const char* source : {"default/a", "default/a/b", "a-1/b-2/c d/.e", "x/y/..."})
    EXPECT_TRUE(check_volume(named(source))) << source;
  const std::string nul("default/a/b\0c", 13);
  for (const std::string& source :
       {std::string(""), std::string("default"), std::string("default/"), std::string("/default/a"),
        std::string("../a/b"), std::string("default/.."), std::string("default/A"), std::string("default/a/"),
        std::string("default/a/../b"), std::string("default/a//b"), std::string("default/a/."), nul,
        std::string("default/.making-1"), std::string("default/-a"), "default/" + std::string(300, 'a'),
        "default/a/" + std::string(300, 'b'), "default/a" + std::string(3000, '/')}) {
    EXPECT_FALSE(check_volume(named(source))) << source;
    EXPECT_FALSE(check(plan(around({overlay("/"), named(source)})))) << source;
  }
  for (const char* target :
       {"", "/", "/proc", "/proc/x", "/sys/fs", "/dev", "/dev/shm", "data", "/a/../b", "/a/"})
    EXPECT_FALSE(check_volume(named("default/a", target))) << target;
}

TEST(Checks, SharedMemoryIsInRange) {
  Plan p = plan(around({overlay("/")}));
  p.shm_bytes = 64 << 10;
  EXPECT_TRUE(check(p));
  for (int64_t bytes : {int64_t{0}, int64_t{(64 << 10) - 1}, (int64_t{1} << 40) + 1, INT64_MAX}) {
    p.shm_bytes = bytes;
    EXPECT_FALSE(check(p)) << bytes;
  }
}

class Sources : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-checks-XXXXXX";
    top_ = ::mkdtemp(name);
    for (const char* dir : {"/state", "/state/images", "/state/images/x", "/state/db", "/shown", "/shown/in",
                            "/hidden", "/shared", "/shared/a", "/shared/a/b"}) {
      ::mkdir((top_ + dir).c_str(), 0755);
    }
    ASSERT_EQ(::symlink("../hidden", (top_ + "/shown/out").c_str()), 0);
    ASSERT_EQ(::symlink("in", (top_ + "/shown/link").c_str()), 0);
    settings_.state_dir = top_ + "/state";
    settings_.sources = {top_ + "/shown"};
    ASSERT_EQ(::symlink("a", (top_ + "/shared/link").c_str()), 0);
    ASSERT_EQ(::symlink("../hidden", (top_ + "/shared/out").c_str()), 0);
    ASSERT_TRUE(write_file(top_ + "/shared/file", "", O_CREAT));
    settings_.shared_paths = {top_ + "/shared"};
  }
  void TearDown() override {
    for (const char* file : {"/shown/out", "/shown/link", "/shared/link", "/shared/out", "/shared/file"})
      ::unlink((top_ + file).c_str());
    for (const char* dir : {"/shared/a/b", "/shared/a", "/shared", "/hidden", "/shown/in", "/shown",
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

TEST_F(Sources, NoLinkLeadsOutOfASharedPath) {
  for (const char* path : {"/shared", "/shared/a", "/shared/a/b", "/shared/link", "/shared/link/b"}) {
    auto opened = open_host_path(settings_, top_ + path, Missing::refused);
    EXPECT_TRUE(opened) << path << ": " << opened.error().message;
  }
  auto code = [&](const char* path) {
    auto opened = open_host_path(settings_, top_ + path, Missing::refused);
    EXPECT_FALSE(opened) << path;
    return opened ? Code::internal : opened.error().code;
  };
  for (const char* path : {"/shared/out", "/shared/out/x", "/shared/file", "/shared/file/x"})
    EXPECT_EQ(code(path), Code::invalid_argument) << path;
  for (const char* path : {"/hidden", "/sharedmore", "/shown/in", "/state", "/state/images/x", ""})
    EXPECT_EQ(code(path), Code::permission_denied) << path;
  EXPECT_EQ(code("/shared/none"), Code::not_found);
  EXPECT_EQ(code("/shared/a/none/x"), Code::not_found);
}

TEST_F(Sources, AMissingDirectoryIsMadeIfThatIsWished) {
  auto made = open_host_path(settings_, top_ + "/shared/a/new/deep", Missing::made);
  EXPECT_TRUE(made) << made.error().message;
  EXPECT_TRUE(open_host_path(settings_, top_ + "/shared/a/new/deep", Missing::refused));
  EXPECT_TRUE(open_host_path(settings_, top_ + "/shared/link/new/more", Missing::made));
  EXPECT_EQ(::rmdir((top_ + "/shared/a/new/more").c_str()), 0) << "not where the link leads";
  for (const char* path : {"/shared/out/new", "/shared/file/new"})
    EXPECT_FALSE(open_host_path(settings_, top_ + path, Missing::made)) << path;
  EXPECT_LT(::access((top_ + "/hidden/new").c_str(), F_OK), 0);
  ::rmdir((top_ + "/shared/a/new/deep").c_str());
  ::rmdir((top_ + "/shared/a/new").c_str());
}

TEST_F(Sources, TheServicesOwnFilesAreNoSharedPath) {
  settings_.shared_paths = {top_};
  EXPECT_TRUE(open_host_path(settings_, top_ + "/hidden", Missing::refused));
  for (const char* path : {"", "/state", "/state/db", "/state/images/x"}) {
    auto opened = open_host_path(settings_, top_ + path, Missing::refused);
    ASSERT_FALSE(opened) << path;
    EXPECT_EQ(opened.error().code, Code::permission_denied) << path;
  }
  EXPECT_FALSE(open_host_path(settings_, top_ + "/state/new", Missing::made));
  EXPECT_LT(::access((top_ + "/state/new").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace osb::launcher
