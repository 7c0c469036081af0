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
  auto first = save_picture({"image/png", "aGVs\nbG8=\n"}), second = save_picture({"image/png", "aGVsbG8"});
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(*read_file(*first), "hello");
  EXPECT_EQ(*read_file(*second), "hello");
  EXPECT_FALSE(save_picture({"image/png", "a*b"}));
  ::unlink(first->c_str());
  ::unlink(second->c_str());
}

}  // namespace
}  // namespace osb::cli
