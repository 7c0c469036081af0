#include "server/test_server.h"

namespace osb::server {
namespace {

using testing::HasSubstr;

constexpr char kBody[] =
    R"({"image":{"uri":"host"},"entrypoint":["a"],"resourceLimits":{"memory":"64Mi"},"env":{"A":"1"}})";

std::string create(TestServer& server, const std::string& body = kBody) {
  Reply reply = server.call("POST", "/v1/sandboxes", body);
  EXPECT_EQ(reply.status, 202) << reply.body;
  return reply.text("id");
}

std::string from_snapshot(const std::string& id, const std::string& more = "") {
  return R"({"snapshotId":")" + id + R"(","resourceLimits":{})" + more + "}";
}

std::string snapshot(TestServer& server, const std::string& sandbox, const std::string& body = "") {
  Reply reply = server.call("POST", "/v1/sandboxes/" + sandbox + "/snapshots", body);
  EXPECT_EQ(reply.status, 202) << reply.body;
  EXPECT_EQ(reply.json().at("status").at("state").as_string(), "Creating");
  return reply.text("id");
}

std::string state(TestServer& server, const std::string& id) {
  Reply reply = server.call("GET", "/v1/snapshots/" + id);
  return reply.status == 200 ? std::string(reply.json().at("status").at("state").as_string())
                             : std::to_string(reply.status);
}

bool becomes(TestServer& server, const std::string& id, const std::string& wanted) {
  for (int i = 0; i < 200; ++i) {
    if (state(server, id) == wanted) return true;
  }
  ADD_FAILURE() << server.call("GET", "/v1/snapshots/" + id).body;
  return false;
}

TEST(Snapshots, FromSandboxToSandbox) {
  TestServer server;
  std::string source = create(server);
  std::string id = snapshot(server, source, R"({"name":"n"})");
  ASSERT_TRUE(becomes(server, id, "Ready"));
  std::string made = create(server, from_snapshot(id));
  auto shown = server.call("GET", "/v1/sandboxes/" + made).json();
  EXPECT_EQ(shown.at("snapshotId").as_string(), id);
  EXPECT_FALSE(shown.as_object().contains("image"));
  const auto& spec = server.runtime.sandboxes.at(made)->spec.image;
  EXPECT_EQ(spec.reference, "host");
  ASSERT_EQ(spec.layers.size(), 1u);
  EXPECT_EQ(spec.layers[0].digest, "of-" + id);
  EXPECT_EQ(server.call("DELETE", "/v1/snapshots/" + id).code(), "SNAPSHOT::DELETE_CONFLICT");
  // One upon the other.
  std::string second = snapshot(server, made);
  ASSERT_TRUE(becomes(server, second, "Ready"));
  std::string last = create(server, from_snapshot(second));
  EXPECT_EQ(server.runtime.sandboxes.at(last)->spec.image.layers.size(), 2u);
  EXPECT_EQ(server.runtime.sandboxes.at(last)->spec.image.reference, "host");
  EXPECT_EQ(server.call("DELETE", "/v1/sandboxes/" + made).status, 204);
  EXPECT_EQ(server.call("DELETE", "/v1/snapshots/" + id).status, 204);
  EXPECT_EQ(state(server, id), "404");
  EXPECT_FALSE(server.runtime.snapshots.contains(id));
}

TEST(Snapshots, AFailureIsSaid) {
  TestServer server;
  std::string source = create(server);
  server.runtime.next_capture_failure = Error{Code::internal, ENOSPC, "write: no space left on device"};
  std::string id = snapshot(server, source);
  ASSERT_TRUE(becomes(server, id, "Failed"));
  EXPECT_THAT(server.call("GET", "/v1/snapshots/" + id).body, HasSubstr("disk of the service is full"));
  EXPECT_EQ(server.call("POST", "/v1/sandboxes", from_snapshot(id)).code(), "SNAPSHOT::NOT_READY");
  EXPECT_EQ(server.call("DELETE", "/v1/snapshots/" + id).status, 204);
}

TEST(Snapshots, WhatIsUnderWayIsNotDeletedAndHoldsItsSource) {
  TestServer server;
  std::string source = create(server);
  server.runtime.capture_hold.reset();
  std::string id = snapshot(server, source);
  EXPECT_EQ(server.call("DELETE", "/v1/snapshots/" + id).code(), "SNAPSHOT::INVALID_STATE");
  EXPECT_EQ(server.call("POST", "/v1/sandboxes", from_snapshot(id)).code(), "SNAPSHOT::NOT_READY");
  server.runtime.capture_hold.set();
  ASSERT_TRUE(becomes(server, id, "Ready"));
}

TEST(Snapshots, AServerThatIsStartedAgainGoesOn) {
  TestServer server;
  std::string source = create(server);
  server.runtime.capture_hold.reset();
  std::string captured = snapshot(server, source), lost;
  server.stop();
  server.runtime.snapshots[captured] = {};  // it came to its end when nobody listened
  server.runtime.capture_hold.set();
  server.start();
  EXPECT_TRUE(becomes(server, captured, "Ready"));
  server.runtime.capture_hold.reset();
  lost = snapshot(server, source);
  server.stop();
  server.runtime.capture_hold.set();
  server.start();
  EXPECT_TRUE(becomes(server, lost, "Failed"));
  EXPECT_THAT(server.call("GET", "/v1/snapshots/" + lost).body, HasSubstr("make another"));
}

TEST(Snapshots, ALostDatabaseLosesNone) {
  TestServer server;
  std::string source = create(server);
  std::string id = snapshot(server, source);
  ASSERT_TRUE(becomes(server, id, "Ready"));
  server.stop();
  server.lose_database();
  server.start();
  ASSERT_TRUE(becomes(server, id, "Ready"));
  EXPECT_EQ(server.call("GET", "/v1/snapshots/" + id).text("sandboxId"), source);
  create(server, from_snapshot(id));
}

constexpr char kPoliced[] =
    R"({"image":{"uri":"host"},"entrypoint":["a"],"resourceLimits":{},)"
    R"("networkPolicy":{"defaultAction":"deny","egress":[{"action":"allow","target":"a.test"}]}})";

void restart_without_database(TestServer& server) {
  server.stop();
  server.lose_database();
  server.start();
}

TEST(Snapshots, ALostDatabaseOpensNone) {
  TestServer server;
  server.runtime.abilities.network_policy = runtime::Ability::can();
  std::string id = snapshot(server, create(server, kPoliced)), open = snapshot(server, create(server));
  ASSERT_TRUE(becomes(server, id, "Ready"));
  ASSERT_TRUE(becomes(server, open, "Ready"));
  restart_without_database(server);
  ASSERT_TRUE(becomes(server, id, "Ready"));
  auto network = server.runtime.sandboxes.at(create(server, from_snapshot(id)))->spec.network;
  ASSERT_TRUE(network);
  EXPECT_FALSE(network->allow_the_rest);
  ASSERT_EQ(network->egress.size(), 1u);
  EXPECT_EQ(network->egress[0].target, "a.test");
  ASSERT_TRUE(becomes(server, open, "Ready"));
  EXPECT_FALSE(server.runtime.sandboxes.at(create(server, from_snapshot(open)))->spec.network);
}

TEST(Snapshots, APolicyThatRestsIsKept) {
  TestServer server;
  server.runtime.abilities.network_policy = runtime::Ability::can();
  std::string policed = create(server, kPoliced), open = create(server);
  EXPECT_EQ(server.call("PATCH", "/v1/sandboxes/" + policed + "/metadata", R"({"a":"b"})").status, 200);
  server.runtime.abilities.network_policy = runtime::Ability::cannot("switched off");
  EXPECT_EQ(server.call("POST", "/v1/sandboxes/" + policed + "/fork", "{}").code(), "SANDBOX::UNSUPPORTED");
  std::string of_policed = snapshot(server, policed), of_open = snapshot(server, open);
  ASSERT_TRUE(becomes(server, of_policed, "Ready"));
  ASSERT_TRUE(becomes(server, of_open, "Ready"));
  server.runtime.abilities.network_policy = runtime::Ability::can();
  auto network = server.runtime.sandboxes.at(create(server, from_snapshot(of_policed)))->spec.network;
  ASSERT_TRUE(network);
  EXPECT_EQ(network->egress.at(0).target, "a.test");
  EXPECT_FALSE(server.runtime.sandboxes.at(create(server, from_snapshot(of_open)))->spec.network);
}

TEST(Snapshots, WhatIsNotKnownOfALostOneIsNotGuessed) {
  TestServer server;
  server.runtime.abilities.network_policy = runtime::Ability::can();
  std::string source = create(server);
  std::string old = snapshot(server, source), nobodys = snapshot(server, source);
  ASSERT_TRUE(becomes(server, old, "Ready"));
  ASSERT_TRUE(becomes(server, nobodys, "Ready"));
  // One by a version that kept no policy, and one without a record.
  std::string& record = server.runtime.snapshots.at(old).what.record;
  size_t at = record.find(R"("network":"",)");
  if (at == record.npos) at = record.find(R"(,"network":"")");
  ASSERT_NE(at, record.npos) << record;
  record.erase(at, std::string_view(R"("network":"",)").size());
  server.runtime.snapshots.at(nobodys).what.record.clear();
  restart_without_database(server);
  ASSERT_TRUE(becomes(server, old, "Ready"));
  auto network = server.runtime.sandboxes.at(create(server, from_snapshot(old)))->spec.network;
  ASSERT_TRUE(network) << "it may have had one";
  EXPECT_FALSE(network->allow_the_rest);
  EXPECT_TRUE(network->egress.empty());
  EXPECT_EQ(state(server, nobodys), "404") << "it may be another owner's";
  EXPECT_TRUE(server.runtime.snapshots.contains(nobodys)) << "and it is not ours to remove";
}

TEST(Snapshots, ASlowEngineLosesNone) {
  TestServer server;
  std::string source = create(server);
  server.runtime.capture_hold.reset();
  std::string id = snapshot(server, source);
  server.stop();
  server.runtime.snapshots[id] = {};  // it came to its end when nobody listened
  server.runtime.capture_hold.set();
  server.runtime.next_keep_failure = Error{Code::timeout, 0, "the engine is slow"};
  server.start();
  // It is asked again after a while.
  for (int i = 0; i < 200 && state(server, id) == "Creating"; ++i)
    server.loop.await(io::sleep_for(std::chrono::milliseconds(20)));
  EXPECT_EQ(state(server, id), "Ready");
}

TEST(Snapshots, TheEnvironmentComesBackWhenAsked) {
  TestServer server;
  std::string source = create(server);
  std::string id = snapshot(server, source);
  ASSERT_TRUE(becomes(server, id, "Ready"));
  auto has = [&](const std::string& made, const std::string& name, const std::string& value) {
    const auto& env = server.runtime.sandboxes.at(made)->claim.env;
    return std::ranges::find(env, std::pair(name, value)) != env.end();
  };
  EXPECT_FALSE(has(create(server, from_snapshot(id)), "A", "1"));
  EXPECT_TRUE(has(create(server, from_snapshot(id, R"(,"extensions":{"restore.env":"true"})")), "A", "1"));
  std::string other =
      create(server, from_snapshot(id, R"(,"env":{"A":"2"},"extensions":{"restore.env":"true"})"));
  EXPECT_TRUE(has(other, "A", "2"));
  EXPECT_FALSE(has(other, "A", "1"));
}

std::string hooks_given(TestServer& server, const std::string& sandbox) {
  for (const auto& [name, value] : server.runtime.sandboxes.at(sandbox)->claim.env) {
    if (name == "OPENSANDBOX_LIFECYCLE") return value;
  }
  return "";
}

TEST(Snapshots, CopiesHaveTheHooks) {
  TestServer server;
  std::string source =
      create(server, R"({"image":{"uri":"host"},"entrypoint":["a"],"resourceLimits":{},)"
                     R"("lifecycle":{"preStart":{"command":["b"]},)"
                     R"("periodic":[{"name":"n","schedule":"@every 9s","command":["c"]}]}})");
  std::string hooks = hooks_given(server, source);
  EXPECT_THAT(hooks, HasSubstr("@every 9s"));
  std::string id = snapshot(server, source);
  ASSERT_TRUE(becomes(server, id, "Ready"));
  // What writes the record anew keeps them.
  EXPECT_EQ(server.call("PATCH", "/v1/sandboxes/" + source + "/metadata", R"({"a":"b"})").status, 200);
  Reply reply = server.call("POST", "/v1/sandboxes/" + source + "/fork", "{}");
  ASSERT_EQ(reply.status, 202) << reply.body;
  EXPECT_EQ(hooks_given(server, std::string(reply.json().at("items").at(0).at("id").as_string())), hooks);
  std::string body = R"({"snapshotId":")" + id + R"("})";
  ASSERT_EQ(server.call("POST", "/v1/sandboxes/" + source + "/rollback", body).status, 200);
  EXPECT_EQ(hooks_given(server, source), hooks);
  EXPECT_EQ(hooks_given(server, create(server, from_snapshot(id))), "") << "that says what it wants";
}

TEST(Snapshots, ForksAreAllOrNone) {
  TestServer server;
  std::string source = create(server);
  Reply reply = server.call("POST", "/v1/sandboxes/" + source + "/fork", R"({"count":3})");
  ASSERT_EQ(reply.status, 202) << reply.body;
  auto value = reply.json();
  EXPECT_EQ(value.at("items").as_array().size(), 3u);
  for (const auto& one : value.at("items").as_array()) {
    const auto& fork = *server.runtime.sandboxes.at(std::string(one.at("id").as_string()));
    EXPECT_EQ(fork.spec.image.layers.size(), 1u);
    EXPECT_EQ(fork.spec.limits.memory_bytes, 64 << 20);
    EXPECT_EQ(one.at("image").at("uri").as_string(), "host");
  }
  EXPECT_EQ(server.runtime.sandboxes.size(), 4u);
  server.runtime.next_failure = runtime::CreateFailure{.error = {Code::internal, 0, "no"}};
  EXPECT_EQ(server.call("POST", "/v1/sandboxes/" + source + "/fork", R"({"count":3})").status, 500);
  EXPECT_EQ(server.runtime.sandboxes.size(), 4u) << "those that were made are gone again";
  for (int i = 0; i < 200 && !server.runtime.snapshots.empty(); ++i) server.call("GET", "/health");
  EXPECT_TRUE(server.runtime.snapshots.empty());
  EXPECT_THAT(server.call("GET", "/v1/snapshots").body, HasSubstr("\"items\":[]"));
}

// The id of what is captured for a fork that is held before it makes its first sandbox.
std::string passing(TestServer& server) {
  for (int i = 0; i < 200; ++i) {
    const auto& all = server.runtime.snapshots;
    if (!all.empty() && all.begin()->second.is_kept) return all.begin()->first;
    server.call("GET", "/health");
  }
  ADD_FAILURE() << "nothing is captured";
  return "";
}

void expect_unseen(TestServer& server, const std::string& id) {
  auto page = server.call("GET", "/v1/snapshots").json();
  EXPECT_TRUE(page.at("items").as_array().empty());
  EXPECT_EQ(page.at("pagination").at("totalItems").as_int64(), 0);
  EXPECT_EQ(server.call("GET", "/v1/snapshots/" + id).code(), "SNAPSHOT::NOT_FOUND");
  EXPECT_EQ(server.call("DELETE", "/v1/snapshots/" + id).code(), "SNAPSHOT::NOT_FOUND");
  EXPECT_EQ(server.call("POST", "/v1/sandboxes", from_snapshot(id)).code(), "SNAPSHOT::NOT_FOUND");
  EXPECT_TRUE(server.runtime.snapshots.contains(id));
}

TEST(Snapshots, WhatAForkPassesThroughIsNobodysToSeeOrDelete) {
  TestServer server;
  std::string source = create(server);
  server.runtime.hold.reset();
  auto fork = server.begin("POST", "/v1/sandboxes/" + source + "/fork", R"({"count":2})");
  std::string id = passing(server);
  expect_unseen(server, id);
  server.runtime.hold.set();
  Reply reply = TestServer::to_reply(server.loop.finish(fork));
  ASSERT_EQ(reply.status, 202) << reply.body;
  for (const auto& one : reply.json().at("items").as_array()) {
    const auto& layers =
        server.runtime.sandboxes.at(std::string(one.at("id").as_string()))->spec.image.layers;
    ASSERT_EQ(layers.size(), 1u);
    EXPECT_EQ(layers[0].digest, "of-" + id);
  }
  for (int i = 0; i < 200 && server.runtime.snapshots.contains(id); ++i) server.call("GET", "/health");
  EXPECT_FALSE(server.runtime.snapshots.contains(id));
}

TEST(Snapshots, NorIsItAfterAServerThatEndedMeanwhile) {
  TestServer server;
  std::string source = create(server);
  server.runtime.hold.reset();
  auto fork = server.begin("POST", "/v1/sandboxes/" + source + "/fork", R"({"count":1})");
  std::string id = passing(server);
  server.stop();
  std::ignore = server.loop.finish(fork);
  server.runtime.hold.set();
  ASSERT_TRUE(server.runtime.snapshots.contains(id));
  // While it cannot be taken away: of an engine that is away nobody knows what it has.
  server.runtime.faults.away = true;
  server.start();
  expect_unseen(server, id);
  server.stop();
  server.runtime.faults.away = false;
  server.start();
  for (int i = 0; i < 200 && server.runtime.snapshots.contains(id); ++i) server.call("GET", "/health");
  EXPECT_FALSE(server.runtime.snapshots.contains(id));
}

TEST(Snapshots, WhatCannotBeForkedOrRolledBackSaysWhy) {
  TestServer server;
  std::string source = create(server);
  server.runtime.next_capture_failure = Error{Code::internal, ENOSPC, "write: no space left on device"};
  Reply reply = server.call("POST", "/v1/sandboxes/" + source + "/fork", R"({"count":1})");
  EXPECT_EQ(reply.code(), "SNAPSHOT::RUNTIME_CREATE_FAILED") << reply.body;
  std::string id = snapshot(server, source);
  ASSERT_TRUE(becomes(server, id, "Ready"));
  std::string other = create(server, R"({"image":{"uri":"other"},"entrypoint":["a"],"resourceLimits":{}})");
  reply = server.call("POST", "/v1/sandboxes/" + other + "/rollback", R"({"snapshotId":")" + id + R"("})");
  EXPECT_EQ(reply.status, 409);
  EXPECT_EQ(reply.code(), "SNAPSHOT::INVALID_RESTORE_CONFIG") << reply.body;
}

TEST(Snapshots, ARollbackReplacesTheSandbox) {
  TestServer server;
  std::string sandbox = create(server);
  std::string id = snapshot(server, sandbox);
  ASSERT_TRUE(becomes(server, id, "Ready"));
  std::string before = server.runtime.sandboxes.at(sandbox)->spec.handle;
  Reply reply =
      server.call("POST", "/v1/sandboxes/" + sandbox + "/rollback", R"({"snapshotId":")" + id + R"("})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.text("id"), sandbox);
  const auto& after = *server.runtime.sandboxes.at(sandbox);
  EXPECT_NE(after.spec.handle, before);
  EXPECT_EQ(after.spec.image.layers.size(), 1u);
  Reply shown = server.call("GET", "/v1/sandboxes/" + sandbox);
  EXPECT_THAT(shown.body, HasSubstr("\"Running\"")) << "the end of what was replaced is not its end";
}

}  // namespace
}  // namespace osb::server
