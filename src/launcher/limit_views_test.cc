#include "launcher/limit_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

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

TEST(LimitViews, OneFilePerSizeAndNotTooMany) {
  std::string directory = testing::TempDir() + "limit_views_test";
  std::filesystem::remove_all(directory);
  auto views = LimitViews::open(directory);
  ASSERT_TRUE(views) << views.error().message;
  auto first = views->meminfo(1 << 30);
  ASSERT_TRUE(first);
  EXPECT_EQ(*views->meminfo(1 << 30), *first);
  EXPECT_EQ(*read_file(*first), meminfo_text(1 << 30));
  for (int64_t i = 0; i < 1000; ++i) ASSERT_TRUE(views->meminfo((1 << 20) + i * 4096));
  size_t files = 0;
  for ([[maybe_unused]] auto& entry : std::filesystem::directory_iterator(directory)) ++files;
  EXPECT_LE(files, 256u);
  ASSERT_TRUE(LimitViews::open(directory)) << "also over what an earlier launcher left";
  ASSERT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
}

TEST(Cpus, ASandboxGetsAsManyAsItsShareRoundedUp) {
  Cpus cpus({0, 1, 2, 3});
  EXPECT_EQ(cpus.count_for(250), 1);
  EXPECT_EQ(cpus.count_for(1000), 1);
  EXPECT_EQ(cpus.count_for(1001), 2);
  EXPECT_EQ(cpus.count_for(4000), 4);
  EXPECT_EQ(cpus.count_for(64'000), 4);
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
