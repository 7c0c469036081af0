#include "cli/skills.h"

#include <gmock/gmock.h>

namespace osb::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kBlock = "<!-- BEGIN opensandbox-a -->\ntext\n<!-- END opensandbox-a -->\n";

TEST(Skills, HaveNameTitleSummaryAndText) {
  auto skills = bundled_skills();
  ASSERT_EQ(skills.size(), 5u);
  for (const Skill& skill : skills) {
    EXPECT_THAT(skill.title, HasSubstr("OpenSandbox")) << skill.slug;
    EXPECT_THAT(skill.summary, HasSubstr("Use when")) << skill.slug;
    EXPECT_THAT(skill.content, HasSubstr("\nname: " + skill.slug + "\n"));
    EXPECT_THAT(skill.body, Not(HasSubstr("\nname:")));
  }
}

TEST(Skills, ABlockIsAddedReplacedAndTakenOut) {
  EXPECT_EQ(with_block("", "a", "text\n"), kBlock);
  EXPECT_EQ(with_block("mine", "a", "text\n"), std::string("mine\n\n") + kBlock);
  std::string there = "mine\n\n" + std::string(kBlock) + "more\n";
  EXPECT_EQ(with_block(there, "a", "text\n"), there);
  EXPECT_THAT(with_block(there, "a", "other\n"),
              HasSubstr("mine\n\n<!-- BEGIN opensandbox-a -->\nother\n<!--"));
  EXPECT_EQ(with_block(there, "a", std::nullopt), "mine\n\nmore\n");
  EXPECT_EQ(with_block("mine\n", "a", std::nullopt), "mine\n");
}

TEST(Skills, WhatFollowsABlockWithoutItsEndStays) {
  std::string cut = "<!-- BEGIN opensandbox-a -->\ntext\nmine\n";
  EXPECT_EQ(with_block(cut, "a", std::nullopt), cut);
}

}  // namespace
}  // namespace osb::cli
