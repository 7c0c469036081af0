#include "base/log.h"

#include <gmock/gmock.h>

namespace osb::log {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;

// What write() puts on standard error.
std::string written(Level level, std::string_view message, Fields fields = {}) {
  testing::internal::CaptureStderr();
  write(level, message, fields);
  return testing::internal::GetCapturedStderr();
}

std::string value(std::string_view text) {
  std::string line = written(Level::error, "m", {{"k", text}});
  size_t at = line.find(" k=");
  return at == line.npos ? line : line.substr(at + 3, line.size() - at - 4);
}

TEST(Log, WritesOneLinePerEvent) {
  EXPECT_THAT(
      written(Level::info, "sandbox running", {{"id", "0198"}, {"ms", 4}, {"ok", std::string("yes")}}),
      MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z INFO  sandbox running "
                   "id=0198 ms=4 "
                   "ok=yes\n"));
  EXPECT_THAT(written(Level::warn, "m"), EndsWith(" WARN  m\n"));
  EXPECT_THAT(written(Level::error, "m"), EndsWith(" ERROR m\n"));
}

TEST(Log, SaysWhoSpeaks) {
  set_role("launcher");
  EXPECT_THAT(written(Level::info, "ready"), EndsWith(" INFO  launcher: ready\n"));
  set_role("");
}

TEST(Log, KeepsQuietBelowItsLevel) {
  EXPECT_EQ(written(Level::debug, "m"), "");
  set_level(Level::error);
  EXPECT_EQ(level(), Level::error);
  EXPECT_EQ(written(Level::warn, "m"), "");
  set_level(Level::debug);
  EXPECT_THAT(written(Level::debug, "m"), HasSubstr(" DEBUG m"));
  set_level(Level::info);
}

TEST(Log, KnowsLevelsByName) {
  EXPECT_EQ(level_from("DEBUG"), Level::debug);
  EXPECT_EQ(level_from("Warning"), Level::warn);
  EXPECT_EQ(level_from("critical"), Level::error);
  EXPECT_EQ(level_from("info"), Level::info);
  EXPECT_EQ(level_from("nonsense"), Level::info);
}

TEST(Log, AValueCannotLeaveItsPlace) {
  struct Case {
    std::string_view text, printed;
  };
  const Case cases[] = {
      {"plain-value_1/2.3", "plain-value_1/2.3"},
      {"na\xc3\xafve", "na\xc3\xafve"},
      {"\xc2\xa0", "\xc2\xa0"},
      {"C:\\x", "C:\\x"},
      {"", "\"\""},
      {"a b", "\"a b\""},
      {"x level=error", "\"x level=error\""},
      {"a=b", "\"a=b\""},
      {"say \"hi\"", "\"say \\\"hi\\\"\""},
      {"\\ \"", "\"\\\\ \\\"\""},
      {"a\nb", "\"a\\nb\""},
      {"\r\t\x1b[2J\x7f", "\"\\x0d\\x09\\x1b[2J\\x7f\""},
      {"\xc2\x9b"
       "2J",
       "\"\\xc2\\x9b2J\""},  // the same escape sequence as one character of UTF-8
      {"a\xc2\x85z", "\"a\\xc2\\x85z\""},
      {"cut\xc2", "cut\xc2"},
  };
  for (const Case& c : cases) EXPECT_EQ(value(c.text), c.printed) << testing::PrintToString(c.text);
  EXPECT_EQ(value({"a\0b", 3}), "\"a\\x00b\"");
}

TEST(Log, AMessageStaysOneLineToo) {
  EXPECT_THAT(written(Level::error, "open /tmp/a\nb\r\x1b[2J \"c\\d\""),
              EndsWith(" ERROR open /tmp/a\\nb\\x0d\\x1b[2J \"c\\d\"\n"));
}

}  // namespace
}  // namespace osb::log
