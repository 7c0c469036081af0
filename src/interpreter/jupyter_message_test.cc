#include "interpreter/jupyter_message.h"

#include <gtest/gtest.h>

#include "interpreter/jupyter_server.h"
#include "json/decode.h"

namespace osb::interpreter {
namespace {

using Kind = JupyterMessage::Kind;

std::string message(std::string_view type, std::string_view content) {
  return "{\"header\":{\"msg_type\":\"" + std::string(type) +
         "\"},\"parent_header\":{\"msg_id\":\"m1\"},\"content\":" + std::string(content) + "}";
}

TEST(JupyterMessage, ReadsOutput) {
  auto read = parse_jupyter(message("stream", R"({"name":"stderr","text":"a\nb"})"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, Kind::stream);
  EXPECT_EQ(read->parent, "m1");
  EXPECT_EQ(read->stream, Stream::err);
  EXPECT_EQ(read->text, "a\nb");
}

TEST(JupyterMessage, ReadsResultsAndDisplays) {
  auto result = parse_jupyter(
      message("execute_result", R"({"execution_count":3,"data":{"text/plain":"4","x/y":{"a":1}}})"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->message.op, KernelMessage::Op::result);
  EXPECT_EQ(result->message.count, 3);
  EXPECT_EQ(result->message.data.size(), 2u);
  for (const char* type : {"display_data", "update_display_data"}) {
    auto shown = parse_jupyter(message(type, R"({"data":{"text/plain":"4"}})"));
    ASSERT_TRUE(shown);
    EXPECT_EQ(shown->message.op, KernelMessage::Op::display);
  }
}

TEST(JupyterMessage, ReadsErrorsAndReplies) {
  auto error = parse_jupyter(message("error", R"({"ename":"E","evalue":"v","traceback":["t"]})"));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, Kind::error);
  EXPECT_EQ(error->message.traceback, std::vector<std::string>{"t"});
  auto reply = parse_jupyter(message("execute_reply", R"({"status":"ok","execution_count":7})"));
  EXPECT_EQ(reply->kind, Kind::reply);
  EXPECT_EQ(reply->message.count, 7);
  EXPECT_NE(reply->message.op, KernelMessage::Op::error);
}

TEST(JupyterMessage, KnowsStates) {
  EXPECT_EQ(parse_jupyter(message("status", R"({"execution_state":"idle"})"))->kind, Kind::idle);
  EXPECT_EQ(parse_jupyter(message("status", R"({"execution_state":"busy"})"))->kind, Kind::other);
  EXPECT_EQ(parse_jupyter(message("status", R"({"execution_state":"restarting"})"))->kind, Kind::restarting);
}

TEST(JupyterMessage, RefusesWhatIsNone) {
  for (const char* text : {"", "{", "[]", "{}", "{\"header\":1}", "null"}) {
    auto message = parse_jupyter(text);
    ASSERT_FALSE(message) << text;
    EXPECT_EQ(message.error().code, Code::corrupt) << text;
  }
  EXPECT_EQ(parse_jupyter("{\"header\":{\"msg_type\":5},\"parent_header\":[],\"content\":7}")->kind,
            Kind::other);
}

TEST(JupyterMessage, ExecuteRequestIsJson) {
  auto parsed = json::parse(encode_execute("id", "s", "print(\"x\")\n", false));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->at("header").at("msg_id").as_string(), "id");
  EXPECT_EQ(parsed->at("content").at("code").as_string(), "print(\"x\")\n");
  EXPECT_EQ(parsed->at("channel").as_string(), "shell");
}

TEST(JupyterUrl, IsTakenApart) {
  auto address = parse_jupyter_url("http://127.0.0.1:44771/nb/", "t");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_EQ(address->port, 44771);
  EXPECT_EQ(address->base, "/nb");
  EXPECT_EQ(parse_jupyter_url("http://localhost", "")->port, 80);
  EXPECT_EQ(parse_jupyter_url("http://[::1]:8888", "")->host, "::1");
  for (const char* url : {"", "127.0.0.1:1", "https://a", "http://", "http://:80", "http://a:0", "http://a:x",
                          "http://a:99999"}) {
    EXPECT_FALSE(parse_jupyter_url(url, "")) << url;
  }
}

}  // namespace
}  // namespace osb::interpreter
