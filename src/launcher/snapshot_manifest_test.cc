#include "launcher/snapshot_manifest.h"

#include <gmock/gmock.h>

#include "launcher/plan.h"

namespace osb::launcher {
namespace {

const std::string kOne(64, 'a'), kOther(64, 'b');

TEST(SnapshotManifest, ComesBackAsItWas) {
  Manifest manifest{.boot = "b", .image = kOther, .bytes = 7, .entries = 8};
  manifest.layers = {{"root", kOne, true}, {"usr", kOther, false}};
  auto again = decode_manifest(encode(manifest));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->boot, "b");
  EXPECT_EQ(again->image, kOther);
  EXPECT_EQ(again->bytes, 7u);
  EXPECT_EQ(again->entries, 8u);
  EXPECT_EQ(again->layers, manifest.layers);
  EXPECT_TRUE(decode_manifest("")->layers.empty());
}

TEST(SnapshotManifest, NonsenseIsRefused) {
  for (const std::string& text :
       {std::string("layer root"), "layer root " + kOne.substr(1), "layer .. " + kOne, "layer a/b " + kOne,
        "layer  " + kOne, std::string("image x"), std::string("size 1"), std::string("size a b"),
        std::string("what is this"), "new root " + kOne + " more", std::string(1, '\0')}) {
    EXPECT_FALSE(decode_manifest(text)) << text;
  }
  std::string many;
  for (size_t i = 0; i <= kMostSnapshotLayers; ++i) many += "layer root " + kOne + "\n";
  EXPECT_FALSE(decode_manifest(many));
}

TEST(SnapshotManifest, WhatAPlanUses) {
  Plan plan;
  Step root;
  root.name = "root";
  root.lowers = {"/s/images/snapshots/layers/" + kOne, "/s/images/store/layers/" + kOther,
                 "/s/images/snapshots/layers/x", "/other/images/snapshots/layers/" + kOther};
  plan.steps.push_back(root);
  EXPECT_EQ(used_layers(plan, "/s"), "layer root " + kOne + "\n");
  plan.steps[0].lowers.clear();
  EXPECT_EQ(used_layers(plan, "/s"), "");
}

}  // namespace
}  // namespace osb::launcher
