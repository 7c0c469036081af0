#include "cli/event_stream.h"

#include <gmock/gmock.h>

namespace osb::cli {
namespace {

using Kind = StreamEvent::Kind;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr std::string_view kStream =
    "{\"type\":\"init\",\"text\":\"0f3c\",\"timestamp\":1}\n\n"
    "{\"type\":\"ping\",\"text\":\"pong\",\"timestamp\":1}\n\n"
    "{\"type\":\"stdout\",\"text\":\"a\\u0085b\",\"timestamp\":1}\n\n"
    "{\"type\":\"stdout\",\"text\":\"\\n\",\"timestamp\":1}\n\n"
    "{\"type\":\"stderr\",\"text\":\"oops\",\"timestamp\":1}\n\n"
    "{\"type\":\"error\",\"error\":{\"ename\":\"CommandExecError\",\"evalue\":\"3\",\"traceback\":[\"exit "
    "status 3\"]}}\n\n";

void check(const std::vector<StreamEvent>& events) {
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].kind, Kind::started);
  EXPECT_EQ(events[1].kind, Kind::output);
  EXPECT_EQ(events[1].text, "a\u0085b\n");
  EXPECT_EQ(events[2].text, "\n");
  EXPECT_EQ(events[3].kind, Kind::errors);
  EXPECT_EQ(events[3].text, "oops\n");
  EXPECT_EQ(events[4].kind, Kind::failed);
  EXPECT_EQ(events[4].text, "3");
  EXPECT_EQ(events[4].detail, "exit status 3");
}

TEST(EventParser, Cells) {
  EventParser parser(EventParser::Source::cell);
  auto events = *parser.feed(
      "{\"type\":\"init\",\"text\":\"0f3c\"}\n\n{\"type\":\"stdout\",\"text\":\"no end\"}\n\n"
      "{\"type\":\"execution_count\",\"execution_count\":1}\n\n"
      "{\"type\":\"result\",\"results\":{\"text\":\"4\",\"text/plain\":\"4\"}}\n\n"
      "{\"type\":\"result\",\"results\":{\"image/png\":\"AAAA\",\"image/svg+xml\":\"<svg/>\"}}\n\n"
      "{\"type\":\"error\",\"error\":{\"ename\":\"ValueError\",\"evalue\":\"no\",\"traceback\":[\"one\","
      "\"two\"]}}\n\n");
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].kind, Kind::started);
  EXPECT_EQ(events[0].text, "0f3c");
  EXPECT_EQ(events[1].text, "no end");
  EXPECT_EQ(events[2].kind, Kind::result);
  EXPECT_EQ(events[2].text, "4");
  EXPECT_EQ(events[3].text, "<image/png, image/svg+xml>");
  EXPECT_EQ(events[4].kind, Kind::failed);
  EXPECT_EQ(events[4].name, "ValueError");
  EXPECT_THAT(events[4].traceback, ::testing::ElementsAre("one", "two"));
}

TEST(EventParser, WholeAndByteByByte) {
  EventParser whole;
  check(*whole.feed(kStream));
  EventParser slow;
  std::vector<StreamEvent> all;
  for (char c : kStream) {
    auto some = slow.feed({&c, 1});
    ASSERT_TRUE(some);
    all.insert(all.end(), some->begin(), some->end());
  }
  check(all);
}

TEST(EventParser, LateFailureIsAFailure) {
  EventParser parser;
  auto got = parser.feed("{\"code\":\"RUNTIME_ERROR\",\"message\":\"no\"}\n");
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 1u);
  EXPECT_EQ(got->front().kind, Kind::failed);
  EXPECT_EQ(got->front().text, "no");
}

TEST(EventParser, IgnoresWhatItDoesNotKnow) {
  EventParser parser;
  EXPECT_TRUE(parser.feed("{\"type\":\"something_new\",\"x\":[1]}\n{}\n")->empty());
}

TEST(EventParser, Refuses) {
  for (const char* line :
       {"<html>\n", "{\"type\":\n", "[1]\n", "\"x\"\n", "{\"type\":\"stdout\",\"text\":[1]}\n"}) {
    EventParser parser;
    auto got = parser.feed(line);
    ASSERT_FALSE(got) << line;
    EXPECT_EQ(got.error().code, Code::corrupt);
  }
  EventParser endless;
  EXPECT_EQ(endless.feed(std::string(9 << 20, 'x')).error().code, Code::too_large);
}

CommandEnd end(std::string value, std::string detail, std::optional<milliseconds> limit = {},
               milliseconds elapsed = {}) {
  return end_from({Kind::failed, std::move(value), std::move(detail)}, limit, elapsed);
}

TEST(CommandEnd, ExitCodes) {
  EXPECT_EQ(end_from({}, {}, {}).status, 0);
  EXPECT_EQ(end("3", "exit status 3").status, 3);
  EXPECT_EQ(end("3", "exit status 3").problem, "");
  EXPECT_EQ(end("255", "exit status 255").status, 255);
}

TEST(CommandEnd, Signals) {
  EXPECT_EQ(end("-1", "signal: killed").status, 137);
  EXPECT_EQ(end("-1", "signal: segmentation fault (core dumped)").status, 139);
  EXPECT_EQ(end("-1", "signal: terminated").status, 143);
  EXPECT_EQ(end("-1", "signal: killed: out of memory (limit 64 MiB)").status, 137);
  EXPECT_EQ(end("-1", "signal: signal 40").status, 168);
}

TEST(CommandEnd, TimeLimit) {
  EXPECT_EQ(end("-1", "signal: killed", milliseconds(100), milliseconds(101)).status, 124);
  EXPECT_EQ(end("-1", "signal: killed", milliseconds(100), milliseconds(99)).status, 137);
  EXPECT_EQ(end("7", "exit status 7", milliseconds(100), milliseconds(101)).status, 7);
}

TEST(CommandEnd, CouldNotStart) {
  EXPECT_EQ(end("nope: No such file or directory", "nope: No such file or directory").status, 127);
  auto denied = end("x: Permission denied", "");
  EXPECT_EQ(denied.status, 126);
  EXPECT_THAT(denied.problem, HasSubstr("Permission denied"));
  EXPECT_FALSE(end("", "").problem.empty());
}

}  // namespace
}  // namespace osb::cli
