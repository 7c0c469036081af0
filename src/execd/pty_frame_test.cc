#include "execd/pty_frame.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace osb::execd::pty {
namespace {

TEST(PtyFrame, whatClientsSend) {
  EXPECT_EQ(std::get<Input>(parse_text_frame(R"({"type":"stdin","data":"ls\n"})")).bytes, "ls\n");
  auto size = std::get<Resize>(parse_text_frame(R"({"type":"resize","cols":100,"rows":40})")).size;
  EXPECT_EQ(size.columns, 100);
  EXPECT_EQ(size.rows, 40);
  EXPECT_EQ(std::get<Signal>(parse_text_frame(R"({"type":"signal","signal":"SIGINT"})")).number, SIGINT);
  EXPECT_TRUE(std::holds_alternative<Ping>(parse_text_frame(R"({"type":"ping","more":1})")));
  EXPECT_TRUE(std::holds_alternative<EndOfInput>(parse_text_frame(R"({"type":"eof"})")));
}

TEST(PtyFrame, whatMeansNothingIsIgnored) {
  for (std::string_view text :
       {"", "{", "[]", "5", "null", R"({"type":"resize"})", R"({"type":"resize","cols":0,"rows":1})",
        R"({"type":"resize","cols":-5,"rows":1})", R"({"type":"resize","cols":70000,"rows":1})",
        R"({"type":"resize","cols":"80","rows":24})", R"({"type":"signal"})",
        R"({"type":"signal","signal":"SIGSTOP"})", R"({"type":"signal","signal":9})",
        R"({"type":"ping"} x)"}) {
    EXPECT_TRUE(std::holds_alternative<Ignored>(parse_text_frame(text))) << text;
  }
}

TEST(PtyFrame, anUnknownTypeIsNamed) {
  EXPECT_EQ(std::get<Unknown>(parse_text_frame(R"({"type":"nonsense"})")).type, "nonsense");
  EXPECT_EQ(std::get<Unknown>(parse_text_frame("{}")).type, "");
  EXPECT_EQ(std::get<Unknown>(parse_text_frame(R"({"type":5})")).type, "");
}

}  // namespace
}  // namespace osb::execd::pty
