// Waiting for changes, over a real socket with a runtime that makes nothing.

#include <gmock/gmock.h>

#include "server/test_server.h"

namespace osb::server {
namespace {

using testing::HasSubstr;
using testing::Not;

const Key kFurther[] = {{.owner = "ann", .key = "ann-key-0123456789"},
                        {.owner = "bob", .key = "bob-key-0123456789"}};

http::Headers key_of(const Key& key) { return {{"OPEN-SANDBOX-API-KEY", key.key}}; }

// The bytes of a stream that came until `enough` is in them.
io::Task<std::string> read_stream(TestServer& server, http::Headers headers, std::string enough) {
  headers.add("Host", server.host());
  auto socket = co_await io::connect_tcp("127.0.0.1", server.port);
  EXPECT_TRUE(socket);
  http::ClientConnection connection(std::move(*socket));
  EXPECT_TRUE(co_await connection.send_head({"GET", "/v1/events", true, std::move(headers)}, 0));
  auto head = co_await connection.read_head();
  EXPECT_TRUE(head && head->status == 200);
  std::string text;
  std::array<char, 4096> buffer;
  while (text.find(enough) == text.npos) {
    auto got = co_await connection.body().read_some(buffer);
    if (!got || *got == 0) co_return text + "(ended)";
    text.append(buffer.data(), *got);
  }
  co_return text;
}

TEST(FollowTest, EachOwnerSeesTheirOwn) {
  TestServer server("", {}, {kFurther[0], kFurther[1]});
  std::string anns = server.create("", key_of(kFurther[0]));
  std::string bobs = server.create("", key_of(kFurther[1]));
  http::Headers from_the_start = key_of(kFurther[0]);
  from_the_start.add("Last-Event-ID", "0");
  auto reading = server.loop.begin(read_stream(server, from_the_start, "Deleted"));
  EXPECT_EQ(server.call("DELETE", "/v1/sandboxes/" + bobs, "", key_of(kFurther[1])).status, 204);
  EXPECT_EQ(server.call("DELETE", "/v1/sandboxes/" + anns, "", key_of(kFurther[0])).status, 204);
  std::string text = server.loop.finish(reading);
  EXPECT_THAT(text, HasSubstr(anns));
  EXPECT_THAT(text, Not(HasSubstr(bobs)));
  EXPECT_THAT(text, HasSubstr("event: Running"));
}

TEST(FollowTest, AWaitEndsWithTheService) {
  TestServer server;
  std::string id = server.create();
  auto waiting = server.begin("GET", "/v1/sandboxes/" + id + "/wait?state=Paused&timeout=300");
  auto streaming = server.loop.begin(read_stream(server, {}, "never"));
  server.call("GET", "/health");
  server.stop();
  EXPECT_EQ(TestServer::to_reply(server.loop.finish(waiting)).status, 200);
  EXPECT_THAT(server.loop.finish(streaming), HasSubstr("(ended)"));
}

TEST(FollowTest, AWaitIsWokenByItsSandboxAlone) {
  TestServer server;
  std::string mine = server.create(), other = server.create();
  auto waiting = server.begin("GET", "/v1/sandboxes/" + mine + "/wait?state=Paused");
  EXPECT_EQ(server.call("POST", "/v1/sandboxes/" + other + "/pause").status, 202);
  EXPECT_FALSE(waiting->done);
  EXPECT_EQ(server.call("POST", "/v1/sandboxes/" + mine + "/pause").status, 202);
  Reply reply = TestServer::to_reply(server.loop.finish(waiting));
  EXPECT_THAT(reply.body, HasSubstr("\"Paused\""));
}

}  // namespace
}  // namespace osb::server
