#include "execd/shell_script.h"

#include <gtest/gtest.h>

namespace osb::execd::shell {
namespace {

TEST(ShellScript, frame_and_quote) {
  EXPECT_EQ(frame('R', "echo hi"), "R00000007echo hi");
  EXPECT_EQ(quote("a'b $x"), "'a'\\''b $x'");
  EXPECT_EQ(quote(""), "''");
}

TEST(ShellScript, programs_are_one_line) {
  EXPECT_EQ(main_program().find('\n'), std::string_view::npos);
  EXPECT_EQ(keeper_program(1).find('\n'), std::string_view::npos);
}

TEST(ShellScript, change_directory_expands_names_and_nothing_else) {
  auto tail = [](std::string word) { return "CDPATH= \\builtin cd -- " + word + "; } >/dev/null 2>&1"; };
  EXPECT_EQ(change_directory("/tmp"), "{ " + tail("'/tmp'"));
  EXPECT_EQ(change_directory("/a b/$(reboot)`x`"), "{ " + tail("'/a b/''$''(reboot)`x`'"));
  EXPECT_EQ(change_directory("$A/x"), "{ [[ -v A ]] && " + tail("\"${A}\"'/x'"));
  EXPECT_EQ(change_directory("${A}b$B_1"), "{ [[ -v A && -v B_1 ]] && " + tail("\"${A}\"'b'\"${B_1}\""));
  EXPECT_EQ(change_directory("~/x"), "{ [[ -v HOME ]] && " + tail("\"${HOME}\"'/x'"));
  EXPECT_EQ(change_directory("~x"), "{ " + tail("'~x'"));
  EXPECT_EQ(change_directory("${A[0]}${"), "{ " + tail("'$''{A[0]}''$''{'"));
  EXPECT_EQ(change_directory("a'b"), "{ " + tail("'a'\\''b'"));
}

}  // namespace
}  // namespace osb::execd::shell
