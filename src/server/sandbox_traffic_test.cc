#include "server/sandbox_traffic.h"

#include <gtest/gtest.h>

#include <vector>

namespace osb::server {
namespace {

TEST(SandboxTraffic, EachSandboxHasItsOwnCount) {
  SandboxTraffic traffic(2);
  auto first = traffic.enter("a"), second = traffic.enter("a");
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(traffic.enter("a"));
  EXPECT_TRUE(traffic.enter("b"));
  first.reset();
  EXPECT_TRUE(traffic.enter("a")) << "a place that was left is free";
}

TEST(SandboxTraffic, WhatEndedLeavesNothing) {
  SandboxTraffic traffic(0);
  {
    std::vector<SandboxTraffic::Place> places;
    for (int i = 0; i < 5000; ++i) places.push_back(*traffic.enter(std::to_string(i % 700)));
    EXPECT_EQ(traffic.sandboxes(), 700u);
  }
  EXPECT_EQ(traffic.sandboxes(), 0u);
}

}  // namespace
}  // namespace osb::server
