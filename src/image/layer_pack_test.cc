#include "image/layer_pack.h"

#include <gmock/gmock.h>

namespace osb::image {
namespace {

const std::string kOne(64, 'a'), kOther(64, 'b');

TEST(LayerPack, WhatIsNotedIsReadAgain) {
  for (Compression kind : {Compression::none, Compression::gzip, Compression::zstd, Compression::xz}) {
    PackedForm form{kOne, 12345, kOther, kind};
    EXPECT_EQ(parse_form(encode(form)), form);
  }
}

TEST(LayerPack, NotesThatMakeNoSense) {
  for (const std::string& text :
       {std::string(), kOne, kOne + " 1 " + kOther, kOne + " 1 " + kOther + " gzip more",
        kOne + " -1 " + kOther + " gzip", kOne + " 99999999999999999999 " + kOther + " gzip",
        kOne + " x " + kOther + " gzip", kOne + " 1 " + kOther + " lzma",
        "A" + kOne.substr(1) + " 1 " + kOther + " gzip", kOne.substr(1) + " 1 " + kOther + " gzip",
        kOne + " 1 ../" + kOther.substr(3) + " gzip"}) {
    EXPECT_FALSE(parse_form(text)) << text;
  }
}

TEST(LayerPack, MediaTypes) {
  EXPECT_EQ(media_type_of(Compression::none), "application/vnd.oci.image.layer.v1.tar");
  EXPECT_EQ(media_type_of(Compression::gzip), "application/vnd.oci.image.layer.v1.tar+gzip");
  EXPECT_EQ(media_type_of(Compression::zstd), "application/vnd.oci.image.layer.v1.tar+zstd");
}

}  // namespace
}  // namespace osb::image
