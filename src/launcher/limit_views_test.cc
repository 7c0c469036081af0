#include "launcher/limit_views.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "launcher/cpus.h"

namespace osb::launcher {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(LimitViews, MemoryOfTheSandbox) {
  std::string text = meminfo_text(512 << 20);
  EXPECT_THAT(text, StartsWith("MemTotal:         524288 kB\nMemFree:          524288 kB\n"));
  EXPECT_THAT(text, HasSubstr("\nSwapTotal:             0 kB\n"));
}

TEST(LimitViews, ProcessorsOfTheSandbox) {
  const char* host = "processor\t: 0\nmodel\t: a\n\nprocessor\t: 1\nmodel\t: a\n\n";
  EXPECT_EQ(cpuinfo_text(host, 1), "processor\t: 0\nmodel\t: a\n\n");
  EXPECT_EQ(cpuinfo_text(host, 2), host);
  EXPECT_EQ(cpuinfo_text(host, 9), host);
  EXPECT_EQ(cpuinfo_text("", 1), "");
  EXPECT_EQ(online_text(1), "0\n");
  EXPECT_EQ(online_text(4), "0-3\n");
}

class LimitViewFiles : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-limit-views-XXXXXX";
    path_ = ::mkdtemp(name);
    views_.emplace(*open_at(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY));
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

  std::string path_;
  std::optional<LimitViews> views_;
};

TEST_F(LimitViewFiles, OneFilePerSizeAndNotTooMany) {
  auto first = views_->meminfo_file(1 << 30);
  ASSERT_TRUE(first);
  EXPECT_EQ(*views_->meminfo_file(1 << 30), *first);
  EXPECT_EQ(*read_file(path_ + "/" + *first), meminfo_text(1 << 30));
  for (int64_t i = 0; i < 1000; ++i) ASSERT_TRUE(views_->meminfo_file((1 << 20) + i * 4096));
  EXPECT_LE(files(), 256u);
  ASSERT_TRUE(LimitViews::open(path_)) << "also over what an earlier launcher left";
  EXPECT_EQ(files(), 0u);
}

// A limit on the size of files stands for a full disk: the write ends in the middle.
TEST_F(LimitViewFiles, AWriteThatFailsLeavesNothingInTheWayOfTheNext) {
  ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit little = before;
  little.rlim_cur = 16;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  auto failed = views_->meminfo_file(1 << 30);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(failed);
  EXPECT_EQ(files(), 0u);
  auto next = views_->meminfo_file(1 << 30);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(*read_file(path_ + "/" + *next), meminfo_text(1 << 30));
}

TEST(Cpus, ASandboxGetsAsManyAsItsShareRoundedUp) {
  Cpus cpus({0, 1, 2, 3});
  EXPECT_EQ(cpus.count_for(250), 1);
  EXPECT_EQ(cpus.count_for(1000), 1);
  EXPECT_EQ(cpus.count_for(1001), 2);
  EXPECT_EQ(cpus.count_for(4000), 4);
  EXPECT_EQ(cpus.count_for(64'000), 4);
}

TEST(Cpus, AHostWhoseProcessorsAreNotKnown) {
  Cpus cpus({});
  EXPECT_EQ(cpus.count_for(250), 1);
  EXPECT_EQ(cpus.count_for(2500), 3);
  EXPECT_EQ(cpus.take("a", cpus.count_for(2500)), std::vector<int>{}) << "no restriction";
}

TEST(Cpus, TheLeastUsedOnesAreTaken) {
  Cpus cpus({0, 1, 3});
  EXPECT_EQ(cpus.take("a", 1), (std::vector<int>{0}));
  EXPECT_EQ(cpus.take("b", 1), (std::vector<int>{1}));
  EXPECT_EQ(cpus.take("c", 2), (std::vector<int>{0, 3}));
  cpus.release("a");
  EXPECT_EQ(cpus.take("d", 2), (std::vector<int>{0, 1}));
  cpus.release("nobody");
  EXPECT_EQ(cpus.take("e", 3), std::vector<int>{}) << "all of them: no restriction";
}

}  // namespace
}  // namespace osb::launcher
