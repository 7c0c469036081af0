#include "docker/limit_refusal.h"

#include <gtest/gtest.h>

namespace osb::docker {
namespace {

// What Debian's engines say.
constexpr char kNoGpu[] = "could not select device driver \"\" with capabilities: [[gpu]]";
constexpr char kNoQuota[] = "--storage-opt is supported only for overlay over xfs with 'pquota' mount option";
constexpr char kNoFiles[] = "runc create failed: error setting rlimit type 7: operation not permitted";

TEST(LimitRefusal, NamesTheLimitThatWasAskedFor) {
  const sandbox::Limits all{.disk_bytes = 1, .open_files = 1, .gpus = 1};
  auto of = [&](const char* words) { return limit_refusal(all, {Code::internal, 0, words}); };
  EXPECT_TRUE(of(kNoGpu)->message.starts_with("resourceLimits.gpu: ")) << of(kNoGpu)->message;
  EXPECT_TRUE(of(kNoQuota)->message.starts_with("resourceLimits.disk: ")) << of(kNoQuota)->message;
  EXPECT_TRUE(of(kNoFiles)->message.starts_with("resourceLimits.nofile: ")) << of(kNoFiles)->message;
  EXPECT_FALSE(of("no space left on device"));
  EXPECT_FALSE(of("error setting rlimit type 6: operation not permitted")) << "of processes";
}

TEST(LimitRefusal, OtherwiseItIsSomethingElse) {
  for (const char* words : {kNoGpu, kNoQuota, kNoFiles})
    EXPECT_FALSE(limit_refusal({.cpu_millis = 1}, {Code::internal, 0, words})) << words;
}

}  // namespace
}  // namespace osb::docker
