#include "interpreter/kernel_message.h"

#include <gtest/gtest.h>

#include "json/decode.h"

namespace osb::interpreter {
namespace {

using Op = KernelMessage::Op;

TEST(KernelMessage, DecodesAResult) {
  auto message = parse_message(
      R"({"op":"result","id":"r1","count":3,"data":{"text/plain":"4","application/json":{"a":[1,2]},"x":null}})");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->op, Op::result);
  EXPECT_EQ(message->id, "r1");
  EXPECT_EQ(message->count, 3);
  ASSERT_EQ(message->data.size(), 2u);
  EXPECT_EQ(message->data[0], (std::pair<std::string, std::string>("text/plain", "4")));
  EXPECT_EQ(message->data[1], (std::pair<std::string, std::string>("application/json", "{\"a\":[1,2]}")));
}

TEST(KernelMessage, DecodesAnError) {
  auto message =
      parse_message(R"({"op":"error","id":"r","ename":"ValueError","evalue":"no","traceback":["a","b"]})");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->op, Op::error);
  EXPECT_EQ(message->ename, "ValueError");
  EXPECT_EQ(message->evalue, "no");
  EXPECT_EQ(message->traceback, (std::vector<std::string>{"a", "b"}));
}

TEST(KernelMessage, KnowsWhoWaits) {
  EXPECT_TRUE(parse_message(R"({"op":"display","wait":true})")->wait);
  EXPECT_FALSE(parse_message(R"({"op":"display","wait":"yes"})")->wait);
  EXPECT_FALSE(parse_message(R"({"op":"display"})")->wait);
}

TEST(KernelMessage, ToleratesWhatIsMissingOrUnknown) {
  EXPECT_EQ(parse_message("{}")->op, Op::unknown);
  EXPECT_EQ(parse_message(R"({"op":"later","x":[{}]})")->op, Op::unknown);
  EXPECT_EQ(parse_message(R"({"op":"done","count":"three","data":7,"traceback":"t"})")->count, 0);
}

TEST(KernelMessage, BoundsWhatItKeeps) {
  std::string many = R"({"op":"error","traceback":[)";
  for (int i = 0; i < 5000; ++i) many += i ? ",\"l\"" : "\"l\"";
  EXPECT_EQ(parse_message(many + "]}")->traceback.size(), 1000u);
}

TEST(KernelMessage, RefusesWhatIsNoMessage) {
  for (const char* text : {"", "null", "[]", "1", "\"run\"", "{", "{\"op\":1}", "{\"op\":[]}", "{} {}",
                           "{\"op\":\"\\ud800\"}", "\xff"}) {
    EXPECT_FALSE(parse_message(text)) << text;
  }
}

TEST(KernelMessage, EncodesARunAsCompactStrings) {
  EXPECT_EQ(encode_run("c.1", "print(\"ä\")\n\x01"),
            "{\"op\":\"run\",\"id\":\"c.1\",\"code\":\"print(\\\"ä\\\")\\n\\u0001\"}");
  auto parsed = json::parse(encode_run("c.1",
                                       "a\xff"
                                       "b"));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->at("code").as_string(),
            "a\ufffd"
            "b");
}

}  // namespace
}  // namespace osb::interpreter
