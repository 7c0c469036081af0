#include "cli/mcp_message.h"

#include <gmock/gmock.h>

namespace osb::cli {
namespace {

using testing::HasSubstr;
using Kind = McpMessage::Kind;

TEST(McpMessage, ReadsRequestsNotificationsAndAnswers) {
  auto request = read_mcp_message(R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->kind, Kind::request);
  EXPECT_EQ(request->id, 7);
  EXPECT_EQ(request->method, "tools/call");
  EXPECT_EQ(request->params.at("name"), "x");
  auto notification = read_mcp_message(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  ASSERT_TRUE(notification);
  EXPECT_EQ(notification->kind, Kind::notification);
  auto answer = read_mcp_message(R"({"jsonrpc":"2.0","id":"a","result":{}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, Kind::answer);
  EXPECT_TRUE(read_mcp_message(R"({"jsonrpc":"2.0","id":"a","method":"ping","params":null})"));
}

struct Rejected {
  std::string text;
  McpCode code;
};

TEST(McpMessage, RejectsEverythingElse) {
  const std::string method(201, 'm'), id(1001, 'i');
  const Rejected kRejected[] = {
      {"", McpCode::parse_error},
      {"{", McpCode::parse_error},
      {"{} {}", McpCode::parse_error},
      {std::string(100, '['), McpCode::parse_error},
      {"[]", McpCode::invalid_request},
      {R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", McpCode::invalid_request},
      {"7", McpCode::invalid_request},
      {"null", McpCode::invalid_request},
      {"{}", McpCode::invalid_request},
      {R"({"id":1,"method":"ping"})", McpCode::invalid_request},
      {R"({"jsonrpc":"1.0","id":1,"method":"ping"})", McpCode::invalid_request},
      {R"({"jsonrpc":2.0,"id":1,"method":"ping"})", McpCode::invalid_request},
      {R"({"jsonrpc":"2.0","id":1})", McpCode::invalid_request},
      {R"({"jsonrpc":"2.0","result":{}})", McpCode::invalid_request},
      {R"({"jsonrpc":"2.0","id":1,"method":7})", McpCode::invalid_request},
      {R"({"jsonrpc":"2.0","id":1,"method":""})", McpCode::invalid_request},
      {R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"("})", McpCode::invalid_request},
      {R"({"jsonrpc":"2.0","id":")" + id + R"(","method":"ping"})", McpCode::invalid_request},
      {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", McpCode::invalid_request},
      {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", McpCode::invalid_request},
      {R"({"jsonrpc":"2.0","id":{},"method":"ping"})", McpCode::invalid_request},
      {R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})", McpCode::invalid_params},
      {R"({"jsonrpc":"2.0","id":1,"method":"ping","params":"x"})", McpCode::invalid_params},
      {std::string(kMaxMcpMessage + 1, ' '), McpCode::invalid_request},
  };
  for (const Rejected& one : kRejected) {
    auto message = read_mcp_message(one.text);
    ASSERT_FALSE(message) << one.text.substr(0, 100);
    EXPECT_EQ(message.error().code, one.code) << one.text.substr(0, 100);
  }
}

TEST(McpMessage, AFaultNamesTheRequestWhenItHasAnId) {
  auto message = read_mcp_message(R"({"jsonrpc":"2.0","id":"seven","method":"ping","params":[]})");
  ASSERT_FALSE(message);
  EXPECT_THAT(mcp_failure(message.error()), HasSubstr(R"("id":"seven")"));
}

}  // namespace
}  // namespace osb::cli
