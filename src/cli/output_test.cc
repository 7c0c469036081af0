#include "cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::cli {
namespace {

namespace bj = json::bj;
using ::testing::HasSubstr;

TEST(Output, JsonIsIndentedByTwo) {
  EXPECT_EQ(pretty_json(bj::object{{"a", bj::array{1, "x"}}, {"b", bj::object()}}),
            "{\n  \"a\": [\n    1,\n    \"x\"\n  ],\n  \"b\": {}\n}");
}

TEST(Output, YamlReadsBackAsTheSame) {
  EXPECT_EQ(yaml(bj::object{{"b", nullptr},
                            {"a", bj::array{bj::object{{"x", 1}, {"z", bj::array{"-f"}}}, "plain"}}}),
            "a:\n- x: 1\n  z:\n  - \"-f\"\n- plain\nb: null\n");
}

TEST(Output, YamlQuotesWhatWouldBeSomethingElse) {
  for (const char* text :
       {"", "true", "No", "12", "2026-11-16", "- x", "a: b", "#", "x ", "a\nb", "null", "'"})
    EXPECT_EQ(yaml(bj::value(text))[0], '"') << text;
  for (const char* text : {"Running", "/tmp/a b", "python-3.12"})
    EXPECT_EQ(yaml(bj::value(text)), std::string(text) + "\n");
}

TEST(Output, TablesHaveRoundCornersAndAlignWideLetters) {
  EXPECT_EQ(boxed_table("T", {{"A", "B"}, {"● x", "two\nlines"}}, false),
            "       T\n╭─────┬───────╮\n│ A   │ B     │\n├─────┼───────┤\n│ ● x │ two   │\n│     │ lines "
            "│\n╰─────┴───────╯\n");
}

TEST(Output, StatesHaveIcons) {
  EXPECT_EQ(with_icon("Running"), "● Running");
  EXPECT_EQ(with_icon("deleted"), "deleted");
}

}  // namespace
}  // namespace osb::cli
