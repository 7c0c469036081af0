#include "docker/pulled_layers.h"

#include <gmock/gmock.h>

namespace osb::docker {
namespace {

using testing::HasSubstr;

class Pulled : public testing::Test {
 protected:
  std::string hear(std::string id, std::string status, uint64_t current = 0, uint64_t total = 0) {
    std::string text = id.empty() ? status : id + ": " + status;
    return layers_.hear(
        {.text = text, .id = std::move(id), .status = std::move(status), .current = current, .total = total});
  }
  PulledLayers layers_;
};

TEST_F(Pulled, LayersAreSummedUp) {
  EXPECT_EQ(hear("1", "Pulling from team/app"), "1: Pulling from team/app") << "no layer yet";
  EXPECT_EQ(hear("a", "Pulling fs layer"), "0.0 of 0.0 MB downloaded, 1 of 1 layers not begun");
  hear("b", "Waiting");
  EXPECT_EQ(hear("a", "Downloading", 1'000'000, 4'000'000),
            "1.0 of 4.0 MB downloaded, 1 of 2 layers not begun");
  EXPECT_EQ(hear("b", "Downloading", 500'000, 20'000'000), "1.5 of 24.0 MB downloaded");
  EXPECT_EQ(hear("a", "Verifying Checksum"), "4.5 of 24.0 MB downloaded");
  EXPECT_EQ(hear("a", "Extracting", 1, 4'000'000), "4.5 of 24.0 MB downloaded") << "others still come";
  EXPECT_EQ(hear("a", "Pull complete"), "4.5 of 24.0 MB downloaded");
  EXPECT_EQ(hear("b", "Download complete"), "unpacking layer 2 of 2");
  EXPECT_EQ(hear("b", "Pull complete"), "unpacking layer 2 of 2");
  EXPECT_EQ(hear("", "Status: Downloaded newer image"), "unpacking layer 2 of 2");
}

TEST_F(Pulled, WhatIsHereAlreadyDoesNotCount) {
  hear("a", "Already exists");
  EXPECT_EQ(hear("b", "Downloading", 1'000'000, 2'000'000), "1.0 of 2.0 MB downloaded");
}

TEST_F(Pulled, SizesThatAreWrong) {
  EXPECT_EQ(hear("a", "Downloading", 3'000'000, 0), "3.0 of 3.0 MB downloaded");
  EXPECT_EQ(hear("a", "Downloading", 1'000'000, 2'000'000), "1.0 of 3.0 MB downloaded") << "it began again";
}

TEST_F(Pulled, ThereIsAnEndToThem) {
  for (int i = 0; i < 10'000; ++i) hear("layer" + std::to_string(i), "Pulling fs layer");
  EXPECT_THAT(hear("another", "Pulling fs layer"), HasSubstr("256 of 256 layers"));
}

}  // namespace
}  // namespace osb::docker
