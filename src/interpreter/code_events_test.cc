#include "interpreter/code_events.h"

#include <gtest/gtest.h>

namespace osb::interpreter {
namespace {

TEST(CodeEvents, ResultHasPlainTextUnderBothNames) {
  std::string out;
  append_result(out, {{"text/plain", "4"}, {"text/html", "<b>4</b>"}, {"text", "shadow"}}, 7);
  EXPECT_EQ(out,
            "{\"type\":\"result\",\"timestamp\":7,\"results\":{\"text\":\"4\",\"text/plain\":\"4\","
            "\"text/html\":\"\\u003cb\\u003e4\\u003c/b\\u003e\"}}\n\n");
}

TEST(CodeEvents, ErrorHasAListOfLines) {
  std::string out;
  append_code_error(out, "E", "v", {"one", "two"}, 7);
  EXPECT_EQ(out,
            "{\"type\":\"error\",\"timestamp\":7,\"error\":{\"ename\":\"E\",\"evalue\":\"v\","
            "\"traceback\":[\"one\",\"two\"]}}\n\n");
}

TEST(CodeEvents, CountIsANumber) {
  std::string out;
  append_execution_count(out, 3, 7);
  EXPECT_EQ(out, "{\"type\":\"execution_count\",\"execution_count\":3,\"timestamp\":7}\n\n");
}

TEST(CodeEvents, PlainTextIsBounded) {
  std::string out, huge;
  while (huge.size() < (3 << 20)) huge += "€";
  append_result(out, {{"text/plain", huge}}, 7);
  EXPECT_LT(out.size(), size_t{4} << 20);
  EXPECT_EQ(out.find("\\ufffd"), out.npos);
  out.clear();
  append_code_error(out, "E", huge, std::vector<std::string>(10, huge), 7);
  EXPECT_LT(out.size(), size_t{4} << 20);
}

}  // namespace
}  // namespace osb::interpreter
