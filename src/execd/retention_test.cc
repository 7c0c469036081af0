#include "execd/retention.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

size_t kept(size_t asked, const Retention::Finished& command) {
  Retention retention;
  size_t count = 0;
  for (size_t i = 0; i < asked; ++i) count += retention.keeps(command) ? 1 : 0;
  return count;
}

TEST(Retention, CountsRecordsMemoryFilesAndBytes) {
  EXPECT_EQ(kept(5000, {.memory_bytes = 100}), Retention::kMaxRecords);
  EXPECT_EQ(kept(5000, {.memory_bytes = 1 << 20}), 16u);
  EXPECT_EQ(kept(5000, {.log_file_bytes = 100}), Retention::kMaxLogFiles);
  EXPECT_EQ(kept(5000, {.log_file_bytes = kGib / 4}), 4u);
}

TEST(Retention, KeepsForADay) {
  EXPECT_EQ(kept(1, {.age = std::chrono::hours(23)}), 1u);
  EXPECT_EQ(kept(1, {.age = std::chrono::hours(24)}), 0u);
}

TEST(Retention, TheNewestLogStaysWhateverItsSize) {
  Retention retention;
  EXPECT_TRUE(retention.keeps({.log_file_bytes = 5 * kGib}));
  EXPECT_FALSE(retention.keeps({.log_file_bytes = 1}));
  EXPECT_TRUE(retention.keeps({.memory_bytes = 100}));
}

TEST(Retention, WhatGoesTakesNothingOlderAlong) {
  Retention retention;
  EXPECT_TRUE(retention.keeps({.log_file_bytes = kGib / 2}));
  EXPECT_FALSE(retention.keeps({.log_file_bytes = kGib}));
  EXPECT_TRUE(retention.keeps({.log_file_bytes = kGib / 2}));
}

}  // namespace
}  // namespace osb::execd
