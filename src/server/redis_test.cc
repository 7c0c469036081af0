// What is read of Redis: addresses, replies, and what gateways push.

#include <gmock/gmock.h>

#include "server/redis_address.h"
#include "server/redis_reply.h"
#include "server/renew_intent.h"

namespace osb::server {
namespace {

using testing::HasSubstr;
using testing::Not;
using Kind = RedisReply::Kind;

TEST(RedisAddressTest, Accepts) {
  auto plain = parse_redis_address("redis://127.0.0.1");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->host, "127.0.0.1");
  EXPECT_EQ(plain->port, 6379);
  EXPECT_EQ(plain->database, 0u);
  auto full = parse_redis_address("REDIS://me:p%40ss:word@redis-0.internal:7000/3");
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_EQ(full->user, "me");
  EXPECT_EQ(full->password, "p@ss:word");
  EXPECT_EQ(full->host, "redis-0.internal");
  EXPECT_EQ(full->port, 7000);
  EXPECT_EQ(full->database, 3u);
  auto password = parse_redis_address("redis://:a@b@[::1]:1/");
  ASSERT_TRUE(password);
  EXPECT_EQ(password->user, "");
  EXPECT_EQ(password->password, "a@b");
  EXPECT_EQ(password->host, "::1");
  EXPECT_EQ(parse_redis_address("redis://[::1]")->port, 6379);
}

TEST(RedisAddressTest, RefusesWithoutRepeating) {
  for (const char* dsn : {"",
                          "127.0.0.1:6379",
                          "http://s3cret@h",
                          "redis:/h",
                          "redis://",
                          "redis://s3cret@h",
                          "redis://s3cret:@h",
                          "redis://:s3cret@",
                          "redis://:s3cret%zz@h",
                          "redis://:s3cret@h:0",
                          "redis://:s3cret@h:65536",
                          "redis://:s3cret@h:",
                          "redis://:s3cret@h:1x",
                          "redis://:s3cret@h/x",
                          "redis://:s3cret@h/65536",
                          "redis://:s3cret@h/-1",
                          "redis://:s3cret@h/1/2",
                          "redis://:s3cret@h?db=1",
                          "redis://:s3cret@h/0#x",
                          "redis://:s3cret@a b",
                          "redis://:s3cret@[::1",
                          "redis://:s3cret@[::1]6379",
                          "redis://:s3cret@[g::1]",
                          "redis://:s3cret@[]"}) {
    auto refused = parse_redis_address(dsn);
    ASSERT_FALSE(refused) << dsn;
    EXPECT_THAT(refused.error().message, Not(HasSubstr("s3cret"))) << dsn;
  }
  EXPECT_FALSE(parse_redis_address("redis://" + std::string(254, 'a')));
  EXPECT_FALSE(parse_redis_address("redis://:" + std::string(3000, 'a') + "@h"));
}

TEST(RedisAddressTest, NamesWhatItDoesNotHave) {
  auto local = parse_redis_address("unix:///run/redis.sock");
  ASSERT_FALSE(local);
  EXPECT_THAT(local.error().message, HasSubstr("unix://"));
}

TEST(RedisAddressTest, Tls) {
  auto plain = parse_redis_address("redis://h");
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->tls);
  auto tls = parse_redis_address("rediss://:s3cret@h:6380/2");
  ASSERT_TRUE(tls) << tls.error().message;
  EXPECT_TRUE(tls->tls);
  EXPECT_EQ(tls->port, 6380);
  EXPECT_EQ(tls->database, 2u);
  EXPECT_EQ(tls->authority_file, "");
  auto own = parse_redis_address("REDISS://h/1?ssl_cert_reqs=required&ssl_ca_certs=/etc/my%20ca.pem");
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->authority_file, "/etc/my ca.pem");
  EXPECT_EQ(own->database, 1u);
  for (const char* dsn : {"redis://h?ssl_ca_certs=/a", "rediss://h?ssl_ca_certs=a",
                          "rediss://h?ssl_ca_certs=", "rediss://h?ssl_ca_certs",
                          "rediss://h?ssl_ca_certs=/a%", "rediss://h?ssl_ca_certs=/a%00b",
                          "rediss://h?ssl_cert_reqs=none", "rediss://h?ssl_cert_reqs=optional",
                          "rediss://h?ssl_cert_reqs", "rediss://h?ssl_check_hostname=false",
                          "rediss://h?db=1", "rediss://h?", "rediss://h?ssl_ca_certs=/a&", "rediss://h#x"}) {
    EXPECT_FALSE(parse_redis_address(dsn)) << dsn;
  }
}

TEST(RedisReplyTest, Commands) {
  EXPECT_EQ(encode_redis_command({"BRPOP", "a b", "5"}), "*3\r\n$5\r\nBRPOP\r\n$3\r\na b\r\n$1\r\n5\r\n");
}

TEST(RedisReplyTest, Accepts) {
  auto popped = parse_redis_reply("*2\r\n$1\r\nk\r\n$4\r\n{\r\n}\r\n+next\r\n");
  ASSERT_TRUE(popped && *popped);
  EXPECT_EQ((*popped)->size, 21u);
  ASSERT_EQ((*popped)->reply.items.size(), 2u);
  EXPECT_EQ((*popped)->reply.items[1].text, "{\r\n}");
  EXPECT_EQ((**parse_redis_reply("*-1\r\n")).reply.kind, Kind::nothing);
  EXPECT_EQ((**parse_redis_reply("$-1\r\n")).reply.kind, Kind::nothing);
  EXPECT_EQ((**parse_redis_reply("$0\r\n\r\n")).reply.kind, Kind::text);
  EXPECT_EQ((**parse_redis_reply(":-7\r\n")).reply.number, -7);
  EXPECT_EQ((**parse_redis_reply("-WRONGPASS x\r\n")).reply.text, "WRONGPASS x");
  EXPECT_EQ((**parse_redis_reply("+OK\r\n")).reply.kind, Kind::status);
}

TEST(RedisReplyTest, WaitsForTheRest) {
  const std::string whole = "*2\r\n$1\r\nk\r\n$4\r\nabcd\r\n";
  for (size_t size = 0; size < whole.size(); ++size) {
    auto parsed = parse_redis_reply(std::string_view(whole).substr(0, size));
    ASSERT_TRUE(parsed) << size;
    EXPECT_FALSE(*parsed) << size;
  }
}

TEST(RedisReplyTest, Refuses) {
  for (const char* bytes : {"\r\n", "HTTP/1.1 200 OK\r\n", "$x\r\n", "$\r\n", "$-2\r\n", "$65537\r\n",
                            ":\r\n", ":1 \r\n", "*9\r\n", "*-2\r\n", "*1\r\n*0\r\n", "$1\r\nab\r\n",
                            "$99999999999999999999\r\n", "%1\r\n", "_\r\n", "*1\r\n\r\n"})
    EXPECT_FALSE(parse_redis_reply(bytes)) << bytes;
  EXPECT_FALSE(parse_redis_reply("+" + std::string(2000, 'a')));
  EXPECT_FALSE(parse_redis_reply("+" + std::string(2000, 'a') + "\r\n"));
}

constexpr char kId[] = "0198c0de-0000-7000-8000-000000000001";

TEST(RenewIntentTest, Accepts) {
  auto intent = parse_renew_intent(std::string(R"({"sandbox_id":")") + kId +
                                   R"(","observed_at":"2026-01-02T03:04:05.123456789Z","port":8080,)"
                                   R"("request_uri":"/api","namespace":"x"})");
  ASSERT_TRUE(intent) << intent.error().message;
  EXPECT_EQ(intent->sandbox, kId);
  EXPECT_EQ(intent->observed, *parse_time("2026-01-02T03:04:05.123456Z"));
}

TEST(RenewIntentTest, Refuses) {
  const std::string id = kId;
  for (const std::string& text : std::vector<std::string>{
           "", "x", "[]", "null", "{}", R"({"sandbox_id":")" + id + R"("})",
           R"({"observed_at":"2026-01-02T03:04:05Z"})",
           R"({"sandbox_id":7,"observed_at":"2026-01-02T03:04:05Z"})",
           R"({"sandbox_id":")" + id + R"(","observed_at":1767323045})",
           R"({"sandbox_id":")" + id + R"(","observed_at":"yesterday"})",
           R"({"sandbox_id":")" + id + R"(","observed_at":""})",
           R"({"sandbox_id":"../x","observed_at":"2026-01-02T03:04:05Z"})",
           R"({"sandbox_id":")" + id + R"(","observed_at":"2026-01-02T03:04:05Z"} x)",
           R"({"sandbox_id":")" + id + R"(","observed_at":"2026-01-02T03:04:05Z","x":")" +
               std::string(kMaxIntent, 'x') + "\"}"})
    EXPECT_FALSE(parse_renew_intent(text)) << text.substr(0, 100);
}

}  // namespace
}  // namespace osb::server
