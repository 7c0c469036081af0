#include "cli/path_pattern.h"

#include <gtest/gtest.h>

namespace osb::cli {
namespace {

TEST(PathPattern, Names) {
  for (auto [pattern, name] : {std::pair("*", "a"),
                               {"a*c", "abbc"},
                               {"?", "x"},
                               {"[a-c]x", "bx"},
                               {"[^a]", "b"},
                               {"\\*", "*"},
                               {"*.txt", ".txt"},
                               {"a[]]b", "a]b"},
                               {"[", "["},
                               {"**", "x"}})
    EXPECT_TRUE(matches_name(pattern, name)) << pattern;
  for (auto [pattern, name] : {std::pair("a", "b"),
                               {"?", ""},
                               {"[a-c]", "d"},
                               {"[^a]", "a"},
                               {"\\*", "x"},
                               {"a*", "ba"},
                               {"*a", "ab"},
                               {"", "x"},
                               {"x", ""},
                               {"[a", "a"}})
    EXPECT_FALSE(matches_name(pattern, name)) << pattern;
  // Many stars take no longer than the product of both.
  std::string stars, as(5000, 'a');
  for (int i = 0; i < 500; ++i) stars += "a*";
  EXPECT_FALSE(matches_name(stars + "b", as));
}

TEST(PathPattern, CleanPathsStayInside) {
  EXPECT_EQ(clean_path("/a/./b//c/"), "a/b/c");
  EXPECT_EQ(clean_path("../../a"), "a");
  EXPECT_EQ(clean_path("a/../.."), "");
  EXPECT_EQ(clean_path("."), "");
}

TEST(PathPattern, WhatIsIgnored) {
  auto list = IgnoreList::parse("# c\n*.log\n!keep.log\n/dir/\n**/tmp\na/**/z\nb/*\n!b/x\n  \n");
  ASSERT_TRUE(list);
  EXPECT_TRUE(list->has_exceptions());
  for (const char* path : {"a.log", "dir", "dir/x/y", "tmp", "x/y/tmp", "x/tmp/in", "a/z", "a/b/c/z", "b/y"})
    EXPECT_TRUE(list->ignores(path)) << path;
  for (const char* path : {"keep.log", "x/a.log", "b", "b/x", "b/x/y", "az", "directory", "a"})
    EXPECT_FALSE(list->ignores(path)) << path;
}

TEST(PathPattern, IgnoreFilesAreBounded) {
  EXPECT_FALSE(IgnoreList::parse(std::string(kMaxIgnoreFile + 1, 'x')));
  std::string lines, names;
  for (int i = 0; i < 1001; ++i) lines += "x\n";
  for (int i = 0; i < 65; ++i) names += "x/";
  EXPECT_FALSE(IgnoreList::parse(lines));
  EXPECT_FALSE(IgnoreList::parse(names));
}

}  // namespace
}  // namespace osb::cli
