#include "execd/events.h"

#include <gtest/gtest.h>

namespace osb::execd::events {
namespace {

template <class F, class... Args>
std::string made_by(F append, Args... args) {
  std::string out;
  append(out, args...);
  return out;
}

TEST(Events, bytes) {
  EXPECT_EQ(made_by(append_init, "0f3c", 1760000000000),
            "{\"type\":\"init\",\"text\":\"0f3c\",\"timestamp\":1760000000000}\n\n");
  EXPECT_EQ(made_by(append_ping, 5), "{\"type\":\"ping\",\"text\":\"pong\",\"timestamp\":5}\n\n");
  EXPECT_EQ(made_by(append_output, Stream::out, "hello", 5),
            "{\"type\":\"stdout\",\"text\":\"hello\",\"timestamp\":5}\n\n");
  EXPECT_EQ(made_by(append_output, Stream::err, "\n\n", 5),
            "{\"type\":\"stderr\",\"text\":\"\\n\\n\",\"timestamp\":5}\n\n");
  EXPECT_EQ(made_by(append_complete, 9, 5),
            "{\"type\":\"execution_complete\",\"execution_time\":9,\"timestamp\":5}\n\n");
  EXPECT_EQ(made_by(append_complete, 0, 5), "{\"type\":\"execution_complete\",\"timestamp\":5}\n\n");
  EXPECT_EQ(made_by(append_error, kCommandError, "3", "exit status 3", 5),
            "{\"type\":\"error\",\"timestamp\":5,\"error\":{\"ename\":\"CommandExecError\",\"evalue\":\"3\","
            "\"traceback\":[\"exit status 3\"]}}\n\n");
}

TEST(Events, output_never_breaks_the_framing) {
  std::string text = "\r\x0b\x0c\x1c\x1d\x1e\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\xff\"\\";
  std::string event = made_by(append_output, Stream::out, text, 5);
  ASSERT_TRUE(event.ends_with("}\n\n"));
  std::string line = event.substr(0, event.size() - 2);
  EXPECT_EQ(line.find_first_of("\n\r\x0b\x0c\x1c\x1d\x1e"), line.npos);
  EXPECT_EQ(line.find("\xc2\x85"), line.npos);
  EXPECT_EQ(line.find("\xe2\x80"), line.npos);
  EXPECT_NE(line.find("\\ufffd"), line.npos);
}

}  // namespace
}  // namespace osb::execd::events
