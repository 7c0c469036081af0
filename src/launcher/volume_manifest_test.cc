#include "launcher/volume_manifest.h"

#include <gtest/gtest.h>

namespace osb::launcher {
namespace {

TEST(VolumeManifest, ComesBackAsItWas) {
  for (const VolumeManifest& one :
       {VolumeManifest{1'700'000'000'000'000, {}, false}, VolumeManifest{0, 1 << 30, true}}) {
    auto read = decode_volume_manifest(encode(one));
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, one);
  }
}

TEST(VolumeManifest, AnythingElseIsRefused) {
  for (const char* text : {"created\n", "created x\n", "created -1\n", "created 1 2\n", "ephemeral yes\n",
                           "size 0\n", "size -5\n", "size\n", "created 99999999999999999999\n"})
    EXPECT_FALSE(decode_volume_manifest(text)) << text;
  EXPECT_FALSE(decode_volume_manifest(std::string_view("created 1\n\0", 11)));
}

}  // namespace
}  // namespace osb::launcher
