#include "execd/memory_kills.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "execd/file_ops.h"

namespace osb::execd {
namespace {

using std::chrono::seconds;

const ExitStatus kKilled{SIGKILL}, kCode137{137 << 8}, kFailed{1 << 8}, kTerminated{SIGTERM}, kFine{0};

class MemoryKillsTest : public testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/osb-kills-XXXXXX";
    ASSERT_TRUE(::mkdtemp(dir));
    root_ = dir;
    count(0);
  }
  void TearDown() override { EXPECT_TRUE(remove_tree(root_)); }
  void count(int kills) {
    std::string text = "low 0\nhigh 0\nmax 7\noom 9\noom_kill " + std::to_string(kills) + "\n";
    ASSERT_TRUE(write_file(root_ + "/memory.events", text, O_CREAT | O_TRUNC));
  }
  std::string root_;
  MemoryKills::Instant start_ = std::chrono::steady_clock::now();
};

TEST_F(MemoryKillsTest, ExplainsTheEndDuringWhichTheCounterGrew) {
  MemoryKills kills(root_, "0::/\n");
  uint64_t before = kills.look(start_);
  EXPECT_TRUE(kills.known());
  EXPECT_FALSE(kills.explains(kKilled, before, start_)) << "killed by somebody";
  count(1);
  EXPECT_TRUE(kills.explains(kKilled, before, start_ + seconds(50)));
  EXPECT_TRUE(kills.explains(kCode137, before, start_ + seconds(50))) << "another victim of the same moment";
  for (ExitStatus end : {kFailed, kTerminated, kFine}) EXPECT_FALSE(kills.explains(end, before, start_));
}

TEST_F(MemoryKillsTest, AnEarlierOneExplainsNothing) {
  MemoryKills kills(root_, "0::/\n");
  uint64_t before = kills.look(start_);
  count(1);
  EXPECT_FALSE(kills.explains(kFailed, before, start_)) << "a program whose child was killed";
  EXPECT_FALSE(kills.explains(kKilled, before, start_ + seconds(5))) << "it ran on";
  uint64_t later = kills.look(start_ + seconds(5));
  EXPECT_FALSE(kills.explains(kKilled, later, start_ + seconds(5))) << "it began afterwards";
}

TEST_F(MemoryKillsTest, WithoutACounterNothingIsExplained) {
  MemoryKills kills(root_ + "/nope", "0::/\n");
  EXPECT_EQ(kills.look(), 0u);
  EXPECT_FALSE(kills.known());
  EXPECT_FALSE(kills.explains(kKilled, 0));
}

TEST_F(MemoryKillsTest, Version1) {
  ASSERT_EQ(::mkdir((root_ + "/memory").c_str(), 0755), 0);
  std::string text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
  ASSERT_TRUE(write_file(root_ + "/memory/memory.oom_control", text, O_CREAT));
  ASSERT_EQ(::unlink((root_ + "/memory.events").c_str()), 0);
  MemoryKills kills(root_, "4:memory:/\n0::/\n");
  EXPECT_EQ(kills.look(), 3u);
}

TEST(OutOfMemoryText, SaysTheLimit) {
  EXPECT_EQ(out_of_memory_text(64 << 20), "out of memory (limit 64 MiB)");
  EXPECT_EQ(out_of_memory_text(int64_t{2} << 30), "out of memory (limit 2 GiB)");
  EXPECT_EQ(out_of_memory_text(500'000'000), "out of memory (limit 500000000 bytes)");
  EXPECT_EQ(out_of_memory_text({}), "out of memory");
}

}  // namespace
}  // namespace osb::execd
