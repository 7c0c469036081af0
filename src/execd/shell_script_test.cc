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
  EXPECT_EQ(main_program(240).find('\n'), std::string_view::npos);
  EXPECT_EQ(keeper_program(240, 1).find('\n'), std::string_view::npos);
}

TEST(ShellScript, descriptors_fit_below_the_limit_of_open_files) {
  EXPECT_EQ(first_descriptor(1 << 20), 240);
  EXPECT_EQ(first_descriptor(256), 240);
  EXPECT_EQ(first_descriptor(255), 239);
  EXPECT_EQ(first_descriptor(64), 48);
  for (const std::string& program : {main_program(48), keeper_program(48, 1)}) {
    EXPECT_EQ(program.find("@0"), std::string::npos) << program;
    EXPECT_EQ(program.find("24"), std::string::npos) << program;
  }
  EXPECT_NE(main_program(48).find("-u 48 __osb_n"), std::string::npos);
  EXPECT_NE(keeper_program(48, 1).find("-u 52 __osb_i"), std::string::npos);
  EXPECT_NE(keeper_program(48, 1).find("-lt 48 "), std::string::npos);
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
