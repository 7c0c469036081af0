#include "cli/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "base/fd.h"

namespace osb::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

PictureProtocol in(std::map<std::string, std::string> environment) {
  return picture_protocol([&](const char* name) {
    auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(Picture, TerminalsAreKnownByWhatTheySay) {
  EXPECT_EQ(in({}), PictureProtocol::none);
  EXPECT_EQ(in({{"TERM", "xterm-256color"}}), PictureProtocol::none);
  EXPECT_EQ(in({{"TERM", "xterm-kitty"}}), PictureProtocol::kitty);
  EXPECT_EQ(in({{"TERM_PROGRAM", "WezTerm"}}), PictureProtocol::iterm);
  EXPECT_EQ(in({{"TERM_PROGRAM", "iTerm.app"}, {"TMUX", "x"}}), PictureProtocol::none);
}

TEST(Picture, InlineInPieces) {
  std::string large(5000, 'A');
  auto kitty = inline_picture({"image/png", large}, PictureProtocol::kitty);
  ASSERT_TRUE(kitty);
  EXPECT_THAT(*kitty, StartsWith("\x1b_Gf=100,a=T,m=1;AAAA"));
  EXPECT_THAT(*kitty, HasSubstr("\x1b\\\x1b_Gm=0;AAAA"));
  EXPECT_THAT(inline_picture({"image/jpeg", "AAAA"}, PictureProtocol::iterm).value_or(""),
              HasSubstr("File=inline=1:AAAA\a"));
}

TEST(Picture, WhatCannotBeDrawnIsNot) {
  EXPECT_FALSE(inline_picture({"image/jpeg", "AAAA"}, PictureProtocol::kitty));
  EXPECT_FALSE(inline_picture({"image/png", "AAAA"}, PictureProtocol::none));
  for (const char* text : {"", "AA\x1b\\", "AA\a", "A B", "A;B"})
    EXPECT_FALSE(inline_picture({"image/png", text}, PictureProtocol::iterm)) << text;
}

TEST(Picture, ElseAFile) {
  ASSERT_EQ(::chdir(::testing::TempDir().c_str()), 0);
  PictureFiles files;
  auto first = files.save({"image/png", "aGVs\nbG8=\n"}), second = files.save({"image/png", "aGVsbG8"});
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(*read_file(*first), "hello");
  EXPECT_EQ(*read_file(*second), "hello");
  EXPECT_FALSE(files.save({"image/png", "a*b"}));
  ::unlink(first->c_str());
  ::unlink(second->c_str());
}

// Saves until it may not; how many files that were.
int save_all(PictureFiles& files, const Picture& picture) {
  for (int saved = 0;; ++saved) {
    auto name = files.save(picture);
    if (!name) {
      EXPECT_EQ(name.error().code, Code::exhausted);
      EXPECT_THAT(name.error().message, HasSubstr("osb cp"));
      return saved;
    }
    ::unlink(name->c_str());
  }
}

TEST(Picture, ASessionDoesNotFillTheDisk) {
  ASSERT_EQ(::chdir(::testing::TempDir().c_str()), 0);
  PictureFiles many, large(100, 1000);
  EXPECT_EQ(save_all(many, {"image/png", "aGVsbG8="}), 100);
  EXPECT_EQ(save_all(large, {"image/png", std::string(400, 'A')}), 3);  // of 300 bytes
  auto small = large.save({"image/png", "aGVsbG8="});
  ASSERT_TRUE(small) << "there is room for it";
  ::unlink(small->c_str());
}

}  // namespace
}  // namespace osb::cli
