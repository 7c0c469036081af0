#include "egress/learned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::egress {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

IpAddress at(const std::string& text) { return *sandbox::parse_ip(text); }

TEST(Learned, CountsForTheTimeOfTheRecordAndAMinute) {
  Learned::Time start{};
  start += seconds(1000);
  const std::pair<uint32_t, int> kCases[] = {{0, 60}, {10, 70}, {120, 180}, {300, 360}, {9999, 360}};
  for (auto [ttl, lease] : kCases) {
    Learned learned;
    learned.learn(at("1.2.3.4"), "a.test", ttl, start);
    EXPECT_THAT(learned.names(at("1.2.3.4"), start + seconds(lease - 1)), ElementsAre("a.test")) << ttl;
    EXPECT_THAT(learned.names(at("1.2.3.4"), start + seconds(lease)), IsEmpty()) << ttl;
  }
}

TEST(Learned, SeveralNamesOfOneAddress) {
  Learned learned;
  Learned::Time now{};
  learned.learn(at("1.2.3.4"), "a.test", 300, now);
  learned.learn(at("1.2.3.4"), "b.test", 0, now);
  EXPECT_THAT(learned.names(at("1.2.3.4"), now), ElementsAre("a.test", "b.test"));
  EXPECT_THAT(learned.names(at("1.2.3.4"), now + seconds(100)), ElementsAre("a.test"));
  learned.learn(at("1.2.3.4"), "a.test", 300, now + seconds(100));
  EXPECT_THAT(learned.names(at("1.2.3.4"), now + seconds(400)), ElementsAre("a.test"));
  EXPECT_THAT(learned.names(at("1.2.3.5"), now), IsEmpty());
}

TEST(Learned, IsBounded) {
  Learned learned;
  Learned::Time now{};
  for (int i = 0; i < 10'000; ++i)
    learned.learn(at("1." + std::to_string(i / 65536) + "." + std::to_string(i / 256 % 256) + "." +
                     std::to_string(i % 256)),
                  "a.test", 300, now + seconds(i / 1000));
  EXPECT_LE(learned.size(), 4096u);
  EXPECT_THAT(learned.names(at("1.0.39.15"), now + seconds(10)), ElementsAre("a.test"));  // the last one
  for (int i = 0; i < 100; ++i) learned.learn(at("9.9.9.9"), std::to_string(i) + ".test", 300, now);
  EXPECT_LE(learned.names(at("9.9.9.9"), now).size(), 8u);
}

}  // namespace
}  // namespace osb::egress
