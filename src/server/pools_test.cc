#include "server/test_server.h"

namespace osb::server {
namespace {

using testing::HasSubstr;

std::string pool_body(const std::string& name, const std::string& capacity, const std::string& more = "") {
  return R"({"name":")" + name +
         R"(","template":{"image":{"uri":"host"},"resourceLimits":{"memory":"64Mi"})" + more +
         R"(},"capacitySpec":)" + capacity + "}";
}

std::string numbers(int buffer_min, int buffer_max, int pool_max, int pool_min = 0) {
  return R"({"bufferMin":)" + std::to_string(buffer_min) + R"(,"bufferMax":)" + std::to_string(buffer_max) +
         R"(,"poolMin":)" + std::to_string(pool_min) + R"(,"poolMax":)" + std::to_string(pool_max) + "}";
}

constexpr char kClaim[] = R"({"extensions":{"poolRef":"p"},"timeout":600})";

class PoolsTest : public testing::Test {
 protected:
  void make(const std::string& capacity, const std::string& more = "") {
    Reply reply = server_.call("POST", "/v1/pools", pool_body("p", capacity, more));
    ASSERT_EQ(reply.status, 201) << reply.body;
  }
  int64_t number(const char* name) {
    auto json = server_.call("GET", "/v1/pools/p").json();
    return json.at("status").at(name).as_int64();
  }
  // Until so many wait and none is being made.
  void filled(int64_t count) {
    for (int i = 0; i < 2000; ++i) {
      if (number("available") == count && number("pending") == 0) return;
    }
    ADD_FAILURE() << server_.call("GET", "/v1/pools/p").body;
  }
  std::string claim(const std::string& body = kClaim) {
    Reply reply = server_.call("POST", "/v1/sandboxes", body);
    EXPECT_EQ(reply.status, 202) << reply.body;
    return reply.text("id");
  }

  TestServer server_;
};

TEST_F(PoolsTest, AClaimIsASandboxOfItsOwner) {
  make(numbers(1, 2, 9), R"(,"env":{"A":"1","B":"1"},"entrypoint":["of","pool"],"metadata":{"m":"1"})");
  filled(2);
  EXPECT_EQ(server_.runtime.waiting(), 2u);
  EXPECT_EQ(server_.call("GET", "/v1/sandboxes").json().at("pagination").at("totalItems").as_int64(), 0);
  std::string id = claim(R"({"extensions":{"poolRef":" p "},"env":{"B":"2"},"metadata":{"n":"2"}})");
  EXPECT_EQ(server_.runtime.claims, 1);
  EXPECT_EQ(server_.runtime.creates, 0);
  const auto& sandbox = *server_.runtime.sandboxes.at(id);
  EXPECT_EQ(sandbox.claim.entrypoint, (std::vector<std::string>{"of", "pool"}));
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(sandbox.claim.env, (Pairs{{"A", "1"}, {"B", "2"}, {"OPENSANDBOX_ID", id}}));
  EXPECT_EQ(sandbox.spec.limits.memory_bytes, 64 << 20);
  EXPECT_EQ(sandbox.spec.id, id) << "an engine has it in a label, which cannot be changed";
  EXPECT_FALSE(sandbox.spec.life) << "nobody knew yet";
  EXPECT_THAT(sandbox.claim.record, HasSubstr(id));
  auto shown = server_.call("GET", "/v1/sandboxes/" + id).json();
  EXPECT_EQ(shown.at("allocation").at("poolRef").as_string(), "p");
  EXPECT_FALSE(shown.as_object().contains("extensions"));
  EXPECT_EQ(shown.at("metadata").as_object().size(), 2u);
  EXPECT_EQ(number("allocated"), 1);
  EXPECT_EQ(server_.call("DELETE", "/v1/sandboxes/" + id).status, 204);
  EXPECT_EQ(number("allocated"), 0);
}

TEST_F(PoolsTest, WithoutAnyEntrypointItIdles) {
  make(numbers(1, 1, 2));
  std::string id = claim();
  EXPECT_EQ(server_.runtime.sandboxes.at(id)->claim.entrypoint.front(), "tail");
}

TEST_F(PoolsTest, WhatTheClaimCannotHaveIsAnEvent) {
  make(numbers(1, 1, 3));
  std::string same = claim(
      R"({"extensions":{"poolRef":"p"},"image":{"uri":"host"},"entrypoint":["a"],"resourceLimits":{"memory":"64Mi"}})");
  EXPECT_THAT(server_.call("GET", "/v1/sandboxes/" + same + "/diagnostics/events").body,
              testing::Not(HasSubstr("Warning")));
  std::string other = claim(
      R"({"extensions":{"poolRef":"p"},"image":{"uri":"x"},"entrypoint":["a"],"resourceLimits":{"cpu":"nonsense"}})");
  EXPECT_THAT(server_.call("GET", "/v1/sandboxes/" + other + "/diagnostics/events").body,
              HasSubstr("image and resourceLimits of the request: ignored"));
  EXPECT_EQ(server_.call("GET", "/v1/sandboxes/" + other).json().at("image").at("uri").as_string(), "host");
}

TEST_F(PoolsTest, NumbersAreKept) {
  make(numbers(2, 3, 4));
  filled(3);
  claim();
  filled(2);  // not below the least
  std::string second = claim();
  EXPECT_EQ(number("total"), 4) << "what waits is filled up to poolMax";
  filled(2);
  claim();
  claim();
  EXPECT_EQ(number("total"), 4);
  Reply refused = server_.call("POST", "/v1/sandboxes", kClaim);
  EXPECT_EQ(refused.status, 429) << refused.body;
  EXPECT_EQ(refused.code(), "POOL::EXHAUSTED");
  EXPECT_EQ(refused.headers.get("Retry-After"), "1");
  // Room for one more, made when it is asked for at the latest.
  EXPECT_EQ(server_.call("DELETE", "/v1/sandboxes/" + second).status, 204);
  claim();
  // Fewer: what waits too many goes, what is claimed stays.
  Reply larger = server_.call("PUT", "/v1/pools/p", R"({"capacitySpec":)" + numbers(5, 5, 99) + "}");
  EXPECT_EQ(larger.status, 200) << larger.body;
  filled(5);
  Reply smaller = server_.call("PUT", "/v1/pools/p", R"({"capacitySpec":)" + numbers(0, 1, 2) + "}");
  EXPECT_EQ(smaller.json().at("capacitySpec").at("poolMax").as_int64(), 2);
  filled(0);
  EXPECT_EQ(number("allocated"), 4);
}

TEST_F(PoolsTest, TheLeastOfAll) {
  make(numbers(0, 0, 5, 3));
  filled(3);
  claim();
  filled(2);
  EXPECT_EQ(number("total"), 3);
}

TEST_F(PoolsTest, ARestartTakesOverWhatWaits) {
  make(numbers(2, 2, 9));
  filled(2);
  std::string id = claim();
  filled(2);
  int made = server_.runtime.warms;
  server_.stop();
  server_.start();
  filled(2);
  EXPECT_EQ(server_.runtime.warms, made) << "none was made anew";
  EXPECT_EQ(number("allocated"), 1);
  EXPECT_EQ(server_.call("GET", "/v1/sandboxes").json().at("pagination").at("totalItems").as_int64(), 1);
  std::string another = claim();
  EXPECT_EQ(server_.runtime.sandboxes.at(another)->spec.id, another);
}

// The entry process of a member may have been started by a server that died before the claim was stored.
TEST_F(PoolsTest, WhatWasStartedIsGivenToNobody) {
  make(numbers(1, 1, 9));
  filled(1);
  server_.stop();
  auto& member = server_.runtime.sandboxes.begin()->second;
  const std::string handle = member->spec.handle;
  member->claim.id = "another's";
  server_.start();
  filled(1);
  for (const auto& [id, sandbox] : server_.runtime.sandboxes) EXPECT_NE(sandbox->spec.handle, handle);
  EXPECT_EQ(server_.runtime.sandboxes.size(), 1u);
}

TEST_F(PoolsTest, WithoutTheDatabaseNothingWaits) {
  make(numbers(2, 2, 9));
  filled(2);
  std::string id = claim();
  filled(2);
  server_.stop();
  server_.lose_database();
  server_.start();
  EXPECT_EQ(server_.call("GET", "/v1/pools/p").code(), "POOL::NOT_FOUND");
  auto shown = server_.call("GET", "/v1/sandboxes/" + id).json();
  EXPECT_EQ(shown.at("allocation").at("poolRef").as_string(), "p") << "what is somebody's stays";
  EXPECT_EQ(server_.runtime.sandboxes.size(), 1u);
}

TEST_F(PoolsTest, TheClaimedOutliveIt) {
  make(numbers(2, 2, 9));
  std::string id = claim();
  filled(2);
  EXPECT_EQ(server_.call("DELETE", "/v1/pools/p").status, 204);
  EXPECT_EQ(server_.call("DELETE", "/v1/pools/p").code(), "POOL::NOT_FOUND");
  for (int i = 0; i < 200 && server_.runtime.waiting() > 0; ++i) server_.loop.settle();
  EXPECT_EQ(server_.runtime.waiting(), 0u);
  EXPECT_EQ(server_.call("GET", "/v1/sandboxes/" + id).status, 200);
  Reply reply = server_.call("POST", "/v1/sandboxes", kClaim);
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.code(), "POOL::NOT_FOUND");
}

TEST_F(PoolsTest, OneThatDiesIsReplaced) {
  make(numbers(1, 1, 9));
  filled(1);
  std::string handle = server_.runtime.sandboxes.begin()->first;
  server_.runtime.end_of(handle, {runtime::End::Kind::signalled, 9, ""});
  for (int i = 0; i < 200 && server_.runtime.sandboxes.contains(handle); ++i) server_.loop.settle();
  EXPECT_FALSE(server_.runtime.sandboxes.contains(handle));
  filled(1);
  claim();
}

TEST_F(PoolsTest, ATemplateThatCannotBeStartedIsToldAndTriedLater) {
  Reply made = server_.call(
      "POST", "/v1/pools",
      R"({"name":"p","template":{"image":{"uri":"missing"}},"capacitySpec":)" + numbers(1, 1, 1) + "}");
  ASSERT_EQ(made.status, 201) << made.body;
  for (int i = 0;
       i < 200 && !server_.call("GET", "/pools/p").json().at("status").as_object().contains("message"); ++i)
    server_.loop.settle();
  auto status = server_.call("GET", "/pools/p").json().at("status").as_object();
  EXPECT_THAT(std::string(status.at("message").as_string()), HasSubstr("IMAGE::NOT_FOUND"));
  EXPECT_TRUE(status.contains("retryAt"));
  Reply refused = server_.call("POST", "/sandboxes", kClaim);
  EXPECT_EQ(refused.code(), "POOL::EXHAUSTED");
  EXPECT_THAT(refused.body, HasSubstr("no image"));
}

TEST_F(PoolsTest, ABadEntrypointIsTheCallersAndCostsOne) {
  make(numbers(1, 1, 9));
  filled(1);
  server_.runtime.next_failure = {runtime::CreateFailure::Kind::bad_entrypoint,
                                  {Code::invalid_argument, 0, "/nope: no such file"}};
  Reply reply =
      server_.call("POST", "/v1/sandboxes", R"({"extensions":{"poolRef":"p"},"entrypoint":["/nope"]})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.code(), "SANDBOX::INVALID_ENTRYPOINT");
  EXPECT_TRUE(server_.call("GET", "/v1/sandboxes").json().at("items").as_array().empty());
  filled(1);
  EXPECT_EQ(server_.runtime.sandboxes.size(), 1u) << "nothing else is left of it";
  EXPECT_EQ(number("allocated"), 0);
}

TEST_F(PoolsTest, AKeyMakesAClaimOnce) {
  make(numbers(1, 1, 9));
  http::Headers key{{"Idempotency-Key", "k1"}};
  Reply first = server_.call("POST", "/v1/sandboxes", kClaim, key);
  Reply again = server_.call("POST", "/v1/sandboxes", kClaim, key);
  EXPECT_EQ(first.status, 202);
  EXPECT_EQ(first.text("id"), again.text("id"));
  EXPECT_EQ(again.headers.get("Idempotency-Replayed"), "true");
  EXPECT_EQ(server_.runtime.claims, 1);
  EXPECT_NE(server_.runtime.sandboxes.at(first.text("id"))->spec.id, first.text("id"))
      << "the key has promised another one before";
}

TEST_F(PoolsTest, ManyAtOnceGetOneEach) {
  make(numbers(3, 3, 20));
  std::vector<std::shared_ptr<TestLoop::Pending<Result<http::Response>>>> pending;
  for (int i = 0; i < 20; ++i) pending.push_back(server_.begin("POST", "/v1/sandboxes", kClaim));
  std::set<std::string> ids, handles;
  for (auto& one : pending) {
    Reply reply = TestServer::to_reply(server_.loop.finish(one));
    ASSERT_EQ(reply.status, 202) << reply.body;
    ids.insert(reply.text("id"));
  }
  for (const std::string& id : ids) handles.insert(server_.runtime.sandboxes.at(id)->spec.handle);
  EXPECT_EQ(ids.size(), 20u);
  EXPECT_EQ(handles.size(), 20u);
}

TEST(Pools, WrongBodies) {
  TestServer server;
  const std::string good = numbers(0, 1, 1);
  const std::pair<std::string, int> bodies[] = {
      {"{}", 422},
      {"[]", 422},
      {pool_body("", good), 422},
      {pool_body("A", good), 422},
      {pool_body("-a", good), 422},
      {pool_body("a.b", good), 422},
      {pool_body(std::string(254, 'a'), good), 422},
      {pool_body("a", "{}"), 422},
      {pool_body("a", numbers(-1, 1, 1)), 422},
      {pool_body("a", numbers(0, 1, 10001)), 422},
      {pool_body("a", numbers(2, 1, 3)), 400},
      {pool_body("a", numbers(0, 1, 1, 2)), 400},
      {pool_body("a", good, R"(,"timeout":60)"), 422},
      {pool_body("a", good, R"(,"snapshotId":"s")"), 422},
      {pool_body("a", good, R"(,"extensions":{"poolRef":"b"})"), 422},
      {pool_body("a", good, R"(,"volumes":7)"), 422},
      {pool_body("a", good, R"(,"networkPolicy":{},"credentialProxy":{"enabled":true})"), 400},
      {pool_body("a", good, R"(,"env":{"X":")" + std::string(70000, 'x') + "\"}"), 400},
      {R"({"name":"a","template":{"image":{"uri":"x","auth":{"username":"u","password":"p"}}},"capacitySpec":)" +
           good + "}",
       422},
      {R"({"name":"a","template":{"spec":{"containers":[]}},"capacitySpec":)" + good + "}", 422},
      {R"({"name":"a","template":3,"capacitySpec":)" + good + "}", 422},
  };
  for (const auto& [body, status] : bodies) {
    Reply reply = server.call("POST", "/v1/pools", body);
    EXPECT_EQ(reply.status, status) << body.substr(0, 200) << "\n" << reply.body;
  }
  EXPECT_EQ(server.call("POST", "/v1/pools", pool_body("a", good)).status, 201);
  Reply twice = server.call("POST", "/v1/pools", pool_body("a", good));
  EXPECT_EQ(twice.status, 409);
  EXPECT_EQ(twice.code(), "POOL::ALREADY_EXISTS");
  EXPECT_EQ(server.call("PUT", "/v1/pools/a", "{}").status, 422);
  EXPECT_EQ(server.call("PUT", "/v1/pools/b", R"({"capacitySpec":)" + good + "}").status, 404);
  EXPECT_EQ(server.call("GET", "/v1/pools").json().at("items").as_array().size(), 1u);
  EXPECT_EQ(server.call("PATCH", "/v1/pools/a").status, 405);
}

TEST(Pools, OfOneOwnerAreNotAnothers) {
  TestServer server("[server]\napi_key = \"key-of-one\"\n", {}, {{"two", "key-of-two"}});
  http::Headers one{{"OPEN-SANDBOX-API-KEY", "key-of-one"}}, two{{"OPEN-SANDBOX-API-KEY", "key-of-two"}};
  EXPECT_EQ(server.call("POST", "/v1/pools", pool_body("p", numbers(1, 1, 5)), one).status, 201);
  EXPECT_EQ(server.call("GET", "/v1/pools/p", "", two).code(), "POOL::NOT_FOUND");
  EXPECT_EQ(server.call("DELETE", "/v1/pools/p", "", two).code(), "POOL::NOT_FOUND");
  EXPECT_EQ(server.call("PUT", "/v1/pools/p", R"({"capacitySpec":)" + numbers(0, 0, 0) + "}", two).code(),
            "POOL::NOT_FOUND");
  EXPECT_TRUE(server.call("GET", "/v1/pools", "", two).json().at("items").as_array().empty());
  EXPECT_EQ(server.call("POST", "/v1/sandboxes", kClaim, two).code(), "POOL::NOT_FOUND");
  // The same name, each its own.
  EXPECT_EQ(server.call("POST", "/v1/pools", pool_body("p", numbers(1, 1, 5)), two).status, 201);
  Reply made = server.call("POST", "/v1/sandboxes", kClaim, two);
  EXPECT_EQ(made.status, 202) << made.body;
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/" + made.text("id"), "", one).status, 404);
  auto status = [&](const http::Headers& who) {
    return server.call("GET", "/v1/pools/p", "", who).json().at("status").at("allocated").as_int64();
  };
  EXPECT_EQ(status(one), 0);
  EXPECT_EQ(status(two), 1);
  EXPECT_EQ(server.call("GET", "/v1/pools", "", {}).status, 401);
}

TEST(Pools, TheServersOwnServesCreatesThatFit) {
  TestServer server("[sandbox]\npool_size = 2\n[sandbox.pool_limits]\nmemory = \"64Mi\"\n");
  for (int i = 0; i < 500 && server.runtime.waiting() < 2; ++i) server.loop.settle();
  ASSERT_EQ(server.runtime.waiting(), 2u);
  EXPECT_TRUE(server.call("GET", "/v1/pools").json().at("items").as_array().empty());
  const std::string start = R"({"image":{"uri":"host"},"entrypoint":["a"],"env":{"A":"1"},"timeout":60,)";
  const std::string fits = start + R"("resourceLimits":{"memory":"64Mi"}})";
  Reply made = server.call("POST", "/v1/sandboxes", fits);
  EXPECT_EQ(made.status, 202) << made.body;
  EXPECT_EQ(server.runtime.claims, 1);
  EXPECT_FALSE(
      server.call("GET", "/v1/sandboxes/" + made.text("id")).json().as_object().contains("allocation"));
  for (const char* rest :
       {R"("resourceLimits":{})", R"("resourceLimits":{"memory":"65536Ki"})",
        R"("resourceLimits":{"memory":"64Mi"},"platform":{"os":"linux","arch":"amd64"})",
        R"("resourceLimits":{"memory":"64Mi"},"extensions":{"opensandbox.extensions.read-only-root":"true"})",
        R"("resourceLimits":{"memory":"64Mi"},"extensions":{"opensandbox.extensions.shm-size":"64Mi"})"}) {
    EXPECT_EQ(server.call("POST", "/v1/sandboxes", start + rest + "}").status, 202) << rest;
  }
  EXPECT_EQ(server.runtime.claims, 1);
  EXPECT_EQ(server.runtime.creates, 5);
}

}  // namespace
}  // namespace osb::server
