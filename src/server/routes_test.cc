// Every route, over a real socket.

#include <gmock/gmock.h>

#include "base/ids.h"
#include "sandbox/principal.h"
#include "server/test_server.h"

namespace osb::server {
namespace {

using runtime::End;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kCreate =
    R"({"image":{"uri":"host"},"entrypoint":["sleep","9"],"resourceLimits":{"cpu":"1"},
  "timeout":600,"metadata":{"team":"t1"},"env":{"A":"b"},"platform":null})";

TEST(Routes, CreateAnswersAsTheClientsNeed) {
  TestServer server;
  Reply reply = server.call("POST", "/v1/sandboxes", kCreate);
  ASSERT_EQ(reply.status, 202) << reply.body;
  auto body = reply.json().as_object();
  std::string id(body.at("id").as_string());
  EXPECT_TRUE(is_uuid(id));
  EXPECT_EQ(reply.headers.get("Location"), "/v1/sandboxes/" + id);
  EXPECT_EQ(reply.headers.get("Content-Type"), "application/json");
  EXPECT_EQ(body.at("status").at("state").as_string(), "Running");
  EXPECT_EQ(body.at("metadata").at("team").as_string(), "t1");
  EXPECT_EQ(body.at("entrypoint").as_array().size(), 2u);
  EXPECT_TRUE(std::string_view(body.at("createdAt").as_string()).ends_with('Z'));
  EXPECT_TRUE(body.contains("expiresAt"));
  EXPECT_FALSE(body.contains("image"));
  EXPECT_FALSE(body.contains("platform"));
  EXPECT_THAT(reply.body, Not(HasSubstr("null")));

  Reply got = server.call("GET", "/sandboxes/" + id);
  ASSERT_EQ(got.status, 200);
  auto sandbox = got.json().as_object();
  EXPECT_EQ(sandbox.at("image").at("uri").as_string(), "host");
  EXPECT_EQ(sandbox.at("status").at("state").as_string(), "Running");
  EXPECT_EQ(sandbox.at("createdAt"), body.at("createdAt"));
  EXPECT_EQ(sandbox.at("expiresAt"), body.at("expiresAt"));
}

TEST(Routes, CreateErrors) {
  TestServer server("[server]\nmax_sandbox_timeout_seconds = 3600");
  EXPECT_EQ(server.call("POST", "/sandboxes", "{}").status, 422);
  EXPECT_EQ(server.call("POST", "/sandboxes", "").status, 422);
  Reply text = server.call("POST", "/sandboxes", kCreate, {{"Content-Type", "text/plain"}});
  EXPECT_EQ(text.status, 422);
  Reply limit = server.call("POST", "/sandboxes",
                            R"({"image":{"uri":"host"},"entrypoint":["a"],"resourceLimits":{"cpu":"0"}})");
  EXPECT_EQ(limit.status, 400);
  EXPECT_EQ(limit.code(), "SANDBOX::INVALID_PARAMETER");
  Reply missing = server.call("POST", "/sandboxes",
                              R"({"image":{"uri":"missing"},"entrypoint":["a"],"resourceLimits":{}})");
  EXPECT_EQ(missing.status, 400);
  EXPECT_EQ(missing.code(), "IMAGE::NOT_FOUND");
  Reply timeout =
      server.call("POST", "/sandboxes",
                  R"({"image":{"uri":"host"},"entrypoint":["a"],"resourceLimits":{},"timeout":3601})");
  EXPECT_EQ(timeout.status, 400);
  EXPECT_EQ(server.runtime.creates, 0);
}

TEST(Routes, OversizedBodiesAreRefused) {
  TestServer server;
  std::string huge = R"({"env":{"A":")" + std::string((1 << 20) + 1, 'x') + "\"}}";
  Reply reply = server.call("POST", "/v1/sandboxes", huge);
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(reply.code(), "SANDBOX::REQUEST_TOO_LARGE");
}

TEST(Routes, GetListAndDelete) {
  TestServer server;
  std::string a = server.create(R"(,"metadata":{"team":"x"})");
  std::string b = server.create(R"(,"metadata":{"team":"y"})");
  Reply list = server.call("GET", "/v1/sandboxes");
  ASSERT_EQ(list.status, 200);
  auto items = list.json().at("items").as_array();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].at("id").as_string(), b) << "newest first";
  EXPECT_EQ(list.json().at("pagination").at("totalItems").as_int64(), 2);

  EXPECT_EQ(server.call("GET", "/sandboxes?metadata=team%3Dx").json().at("items").as_array().size(), 1u);
  EXPECT_EQ(server.call("GET", "/sandboxes?state=running").json().at("items").as_array().size(), 2u);
  EXPECT_EQ(server.call("GET", "/sandboxes?state=Failed").json().at("items").as_array().size(), 0u);
  Reply page = server.call("GET", "/sandboxes?page=2&pageSize=1");
  EXPECT_EQ(page.json().at("items").at(0).at("id").as_string(), a);
  EXPECT_FALSE(page.json().at("pagination").at("hasNextPage").as_bool());
  EXPECT_EQ(server.call("GET", "/sandboxes?page=9").json().at("items").as_array().size(), 0u);
  EXPECT_EQ(server.call("GET", "/sandboxes?pageSize=201").status, 422);
  EXPECT_EQ(server.call("GET", "/sandboxes?metadata=team").code(), "INVALID_METADATA_FORMAT");

  Reply gone = server.call("DELETE", "/v1/sandboxes/" + a);
  EXPECT_EQ(gone.status, 204);
  EXPECT_EQ(gone.body, "");
  EXPECT_FALSE(gone.headers.contains("Content-Length"));
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/" + a).status, 404);
  Reply again = server.call("DELETE", "/v1/sandboxes/" + a);
  EXPECT_EQ(again.status, 404);
  EXPECT_EQ(again.code(), "SANDBOX::NOT_FOUND");
}

TEST(Routes, RenewAndMetadata) {
  TestServer server;
  std::string id = server.create(R"(,"timeout":60)"), forever = server.create();
  std::string base = "/v1/sandboxes/" + id;
  Reply renewed = server.call("POST", base + "/renew-expiration",
                              R"({"expiresAt":"2999-01-02T05:04:05.123456789+02:00"})");
  ASSERT_EQ(renewed.status, 200) << renewed.body;
  EXPECT_EQ(renewed.text("expiresAt"), "2999-01-02T03:04:05.123456Z");
  EXPECT_EQ(server.call("GET", base).text("expiresAt"), "2999-01-02T03:04:05.123456Z");
  Reply past = server.call("POST", base + "/renew-expiration", R"({"expiresAt":"2001-01-02T03:04:05Z"})");
  EXPECT_EQ(past.status, 400);
  EXPECT_EQ(past.code(), "SANDBOX::INVALID_EXPIRATION");
  Reply never = server.call("POST", "/sandboxes/" + forever + "/renew-expiration",
                            R"({"expiresAt":"2999-01-02T03:04:05Z"})");
  EXPECT_EQ(never.status, 409);
  EXPECT_EQ(server.call("POST", base + "/renew-expiration", "{}").status, 422);
  EXPECT_EQ(server.call("POST", "/sandboxes/nope/renew-expiration", R"({"expiresAt":"2999-01-02T03:04:05Z"})")
                .status,
            404);

  Reply patched = server.call("PATCH", base + "/metadata", R"({"a":"1","b":"2"})");
  ASSERT_EQ(patched.status, 200) << patched.body;
  EXPECT_EQ(patched.json().at("metadata").at("b").as_string(), "2");
  patched = server.call("PATCH", base + "/metadata", R"({"a":null})",
                        {{"Content-Type", "application/merge-patch+json"}});
  EXPECT_EQ(patched.json().at("metadata").as_object().size(), 1u);
  EXPECT_EQ(server.call("PATCH", base + "/metadata", "{}").status, 200);
  EXPECT_EQ(server.call("PATCH", base + "/metadata", R"({"opensandbox.io/x":"1"})").code(),
            "INVALID_METADATA_LABEL");
  EXPECT_EQ(server.call("PATCH", base + "/metadata", R"({"a":5})").status, 422);
  EXPECT_EQ(server.call("PATCH", "/sandboxes/nope/metadata", "{}").status, 404);
}

TEST(Routes, HealthAndVersion) {
  TestServer plain;
  Reply health = plain.call("GET", "/health");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.text("status"), "healthy");
  EXPECT_EQ(health.text("runtime"), "fake");
  EXPECT_EQ(health.text("isolation"), "test tier");
  EXPECT_FALSE(health.json().as_object().contains("fallback"));
  EXPECT_EQ(plain.call("GET", "/version").text("version"), OSB_VERSION);
  auto metrics = plain.call("GET", "/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.body, ::testing::HasSubstr("opensandbox_metrics_up{runtime=\"fake\"} 1\n"));
  EXPECT_EQ(plain.call("GET", "/v1/metrics").status, 404);
  EXPECT_EQ(plain.call("GET", "/v1/health").status, 404);
  EXPECT_EQ(plain.call("GET", "/v1/version").status, 404);

  TestServer fallback("[runtime]\ntype = \"docker\"\nfallback = \"native\"");
  EXPECT_EQ(fallback.call("GET", "/health").text("configuredRuntime"), "docker");
  EXPECT_TRUE(fallback.call("GET", "/health").json().at("fallback").as_bool());
}

TEST(Routes, HealthSaysWhatIsWrong) {
  TestServer server;
  server.runtime.trouble = "no groups";
  Reply sick = server.call("GET", "/health");
  EXPECT_EQ(sick.status, 503);
  EXPECT_EQ(sick.text("status"), "unhealthy");
  auto checks = sick.json().at("checks").as_array();
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].at("name").as_string(), "runtime");
  EXPECT_EQ(checks[0].at("cause").as_string(), "runtime fake: no groups");
  EXPECT_FALSE(checks[0].at("remedy").as_string().empty());
}

TEST(Routes, ARuntimeThatIsAwayBesideTheStandardOneDegrades) {
  TestServer server;
  auto engine = std::make_shared<testkit::MemoryEngine>(server.loop.executor());
  testkit::MemoryRuntime second(engine, "second", "", testkit::answer_inside);
  server.stop();
  server.runtimes.add(second);
  second.faults.away = true;
  server.start();
  Reply health = server.call("GET", "/health");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.text("status"), "degraded");
  EXPECT_EQ(health.json().at("runtimes").as_array().size(), 2u);
  EXPECT_EQ(health.json().at("checks").as_array()[0].at("cause").as_string(),
            "runtime second: the engine is away");
  server.stop();
  server.loop.await(second.close());
}

TEST(Routes, WhatARuntimeCannotDoIsRefusedWithItsReason) {
  TestServer server;
  auto post = [&](std::string more) {
    return server.call("POST", "/v1/sandboxes",
                       R"({"image":{"uri":"host"},"entrypoint":["sleep"],"resourceLimits":{},)" + more + "}");
  };
  server.runtime.abilities.volumes = runtime::Ability::cannot("volumes are for others");
  server.runtime.abilities.network_policy = runtime::Ability::cannot("all or nothing");
  std::string volume = R"("volumes":[{"name":"a","mountPath":"/a","pvc":{"claimName":"data"}}])";
  EXPECT_THAT(post(volume).text("message"), HasSubstr("volumes: volumes are for others"));
  std::string policy =
      R"("networkPolicy":{"defaultAction":"allow","egress":[{"action":"deny","target":"a.b"}]})";
  EXPECT_THAT(post(policy).text("message"), HasSubstr("networkPolicy: all or nothing"));
  Reply unknown = post(R"("extensions":{"opensandbox.extensions.runtime":"docker"})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_THAT(unknown.text("message"), HasSubstr("it has: fake"));

  server.runtime.abilities.volumes = server.runtime.abilities.network_policy = runtime::Ability::can();
  Reply made = post(volume + "," + policy + R"(,"extensions":{"opensandbox.extensions.runtime":"fake"})");
  ASSERT_EQ(made.status, 202) << made.body;
  const auto& spec = server.runtime.sandboxes.at(made.text("id"))->spec;
  ASSERT_EQ(spec.mounts.size(), 1u);
  EXPECT_EQ(spec.mounts[0].source, "data");
  EXPECT_EQ(spec.mounts[0].kind, runtime::Mount::Kind::volume);
  EXPECT_EQ(spec.owner, sandbox::kDefaultOwner);
  EXPECT_EQ(spec.mounts[0].target, "/a");
  ASSERT_TRUE(spec.network);
  EXPECT_TRUE(spec.network->allow_the_rest);
  EXPECT_FALSE(spec.network->egress.at(0).allow);
  EXPECT_EQ(spec.network->egress.at(0).target, "a.b");
}

TEST(Routes, VolumesAreThoseOfTheCaller) {
  TestServer server("[server]\napi_key = \"key-of-one\"\n", {}, {{"two", "key-of-two"}});
  server.runtime.volumes[std::string(sandbox::kDefaultOwner)] = {
      {.name = "a", .created = WallTime(std::chrono::seconds(1)), .users = 1},
      {.name = "b", .ephemeral = true}};
  auto call = [&](const char* method, const char* target, const char* key) {
    return server.call(method, target, "", {{"OPEN-SANDBOX-API-KEY", key}});
  };
  EXPECT_EQ(
      call("GET", "/v1/volumes", "key-of-one").body,
      R"({"items":[{"name":"a","createdAt":"1970-01-01T00:00:01Z","deleteOnSandboxTermination":false,"sandboxes":1},)"
      R"({"name":"b","createdAt":"1970-01-01T00:00:00Z","deleteOnSandboxTermination":true,"sandboxes":0}]})");
  EXPECT_EQ(call("GET", "/v1/volumes", "key-of-two").body, R"({"items":[]})");
  for (const char* target : {"/v1/volumes/a", "/v1/volumes/b", "/v1/volumes/none", "/v1/volumes/..%2Fdb"}) {
    Reply theirs = call("DELETE", target, "key-of-two");
    EXPECT_EQ(theirs.status, 404) << target;
    EXPECT_EQ(theirs.code(), "VOLUME::NOT_FOUND") << target;
  }
  Reply used = call("DELETE", "/v1/volumes/a", "key-of-one");
  EXPECT_EQ(used.status, 409);
  EXPECT_EQ(used.code(), "VOLUME::IN_USE");
  EXPECT_EQ(call("DELETE", "/volumes/b", "key-of-one").status, 204);
  EXPECT_EQ(server.runtime.volumes[std::string(sandbox::kDefaultOwner)].size(), 1u);
}

TEST(Routes, CredentialsOfAnImageGoToTheRuntimeAndNowhereElse) {
  TestServer server;
  Reply made = server.call(
      "POST", "/v1/sandboxes",
      R"({"image":{"uri":"host","auth":{"username":"me","password":"hunter2"}},"entrypoint":["sleep"],)"
      R"("resourceLimits":{}})");
  ASSERT_EQ(made.status, 202) << made.body;
  const auto& sandbox = *server.runtime.sandboxes.at(made.text("id"));
  ASSERT_TRUE(sandbox.spec.image.auth);
  EXPECT_EQ(sandbox.spec.image.auth->password, "hunter2");
  EXPECT_THAT(sandbox.claim.record, Not(HasSubstr("hunter2")));
  std::string path = "/v1/sandboxes/" + made.text("id");
  EXPECT_THAT(server.call("GET", path).body + server.call("GET", path + "/diagnostics/summary").body,
              Not(HasSubstr("hunter2")));
}

TEST(Routes, ARuntimeMayHaveEndpointsOfItsOwn) {
  TestServer server;
  std::string path = "/v1/sandboxes/" + server.create() + "/endpoints/80";
  EXPECT_THAT(server.call("GET", path).text("endpoint"), HasSubstr("/proxy/80"));
  server.runtime.own_endpoint = "10.0.0.7:80";
  EXPECT_EQ(server.call("GET", path).text("endpoint"), "10.0.0.7:80");
  EXPECT_THAT(server.call("GET", path + "?use_server_proxy=true").text("endpoint"), HasSubstr("/proxy/80"));
}

TEST(Routes, MetricsEvents) {
  TestServer server;
  const char* event = R"({"eventType":"sandbox.create","createDurationMs":5,"success":true})";
  EXPECT_EQ(server.call("POST", "/v1/metrics/events", event).status, 204);
  EXPECT_EQ(server.call("POST", "/v1/metrics/events", "{}").status, 422);
  EXPECT_EQ(server.call("POST", "/metrics/events", event).status, 404);
}

TEST(Routes, PauseAndResume) {
  TestServer server;
  std::string base = "/v1/sandboxes/" + server.create();
  auto state = [&] {
    return std::string(server.call("GET", base).json().at("status").at("state").as_string());
  };
  EXPECT_EQ(server.call("POST", base + "/resume").code(), "SANDBOX::NOT_PAUSED");
  Reply paused = server.call("POST", base + "/pause", R"({"ignored":[1]})");
  EXPECT_EQ(paused.status, 202);
  EXPECT_EQ(paused.headers.get("Content-Length"), "0");
  EXPECT_EQ(paused.body, "");
  EXPECT_EQ(state(), "Paused");
  Reply again = server.call("POST", base + "/pause");
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(again.code(), "SANDBOX::NOT_RUNNING");
  Reply proxied = server.call("GET", base + "/proxy/44772/ping");
  EXPECT_EQ(proxied.status, 409);
  EXPECT_EQ(proxied.code(), "SANDBOX::PAUSED");
  EXPECT_THAT(proxied.text("remedy"), testing::HasSubstr("/resume"));
  EXPECT_EQ(server.runtime.connects, 0);
  EXPECT_EQ(server.call("GET", base + "/endpoints/44772").status, 200);
  EXPECT_EQ(server.call("POST", base + "/resume").status, 202);
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(server.call("GET", base + "/proxy/44772/ping").status, 200);
  for (const char* verb : {"pause", "resume"})
    EXPECT_EQ(server.call("POST", std::string("/v1/sandboxes/nope/") + verb).code(), "SANDBOX::NOT_FOUND");
  EXPECT_EQ(server.call("POST", base + "/pause").status, 202);
  EXPECT_EQ(server.call("DELETE", base).status, 204);
}

TEST(Routes, WhatIsNotBuiltSaysSo) {
  TestServer server;
  std::string id = server.create();
  const std::pair<const char*, const char*> routes[] = {
      {"POST", "/v1/templates"},
      {"GET", "/v1/templates"},
      {"GET", "/templates/x"},
      {"DELETE", "/templates/x"},
  };
  for (auto [method, path] : routes) {
    Reply reply = server.call(method, path);
    EXPECT_EQ(reply.status, 501) << method << path;
    EXPECT_FALSE(reply.code().empty());
    EXPECT_FALSE(reply.text("message").empty());
  }
}

TEST(Routes, Diagnostics) {
  TestServer server;
  std::string id = server.create(R"(,"env":{"TOKEN":"hunter2"})");
  std::string base = "/v1/sandboxes/" + id + "/diagnostics/";
  Reply events = server.call("GET", base + "events");
  EXPECT_EQ(events.status, 200);
  EXPECT_EQ(events.headers.get("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(events.headers.get("Deprecation"), "true");
  EXPECT_THAT(events.body, AllOf(HasSubstr("Created"), HasSubstr("Running")));
  Reply inspect = server.call("GET", base + "inspect");
  EXPECT_FALSE(inspect.headers.contains("Deprecation"));
  EXPECT_THAT(inspect.body, AllOf(HasSubstr(id), HasSubstr("TOKEN"), Not(HasSubstr("hunter2"))));
  EXPECT_EQ(server.call("GET", base + "logs").body, "2026-01-02T03:04:05Z it says so\n");
  server.runtime.faults.away = true;
  EXPECT_EQ(server.call("GET", base + "logs").body, "(no logs)");
  EXPECT_THAT(server.call("GET", base + "logs?scope=all").body, HasSubstr("the engine is away"));
  server.runtime.faults.away = false;
  EXPECT_THAT(server.call("GET", base + "summary").body,
              AllOf(HasSubstr("INSPECT"), HasSubstr("EVENTS"), HasSubstr("LOGS"), HasSubstr(id)));

  Reply stable = server.call("GET", base + "events?scope=Runtime");
  ASSERT_EQ(stable.status, 200) << stable.body;
  auto body = stable.json().as_object();
  EXPECT_EQ(body.at("sandboxId").as_string(), id);
  EXPECT_EQ(body.at("kind").as_string(), "events");
  EXPECT_EQ(body.at("scope").as_string(), "runtime");
  EXPECT_EQ(body.at("delivery").as_string(), "inline");
  EXPECT_EQ(body.at("contentLength").as_int64(), static_cast<int64_t>(body.at("content").as_string().size()));
  EXPECT_FALSE(body.at("truncated").as_bool());
  EXPECT_FALSE(stable.headers.contains("Deprecation"));
  EXPECT_TRUE(server.call("GET", base + "events?scope=all").json().as_object().contains("warnings"));
  EXPECT_EQ(server.call("GET", base + "logs?scope=container").status, 200);
  for (const char* tail : {"events?scope=", "events?scope=container", "logs?scope=runtime", "logs?scope=x"}) {
    EXPECT_EQ(server.call("GET", base + tail).code(), "DIAGNOSTICS_SCOPE_UNSUPPORTED") << tail;
  }
  for (const char* tail : {"events?limit=0", "events?limit=501", "logs?tail=0", "summary?event_limit=x"}) {
    EXPECT_EQ(server.call("GET", base + tail).status, 422) << tail;
  }
  EXPECT_EQ(server.call("GET", "/sandboxes/nope/diagnostics/events").status, 404);
  EXPECT_EQ(server.call("GET", "/sandboxes/nope/diagnostics/inspect").status, 404);

  server.runtime.end_of(id, {End::Kind::exited, 3, "", "2026-01-02T03:04:05Z last words\n", true});
  server.loop.settle();
  EXPECT_EQ(server.call("GET", base + "logs").body, "2026-01-02T03:04:05Z last words\n");
  EXPECT_EQ(server.call("GET", base + "logs?since=1h").body, "(no logs)") << "they are older";
  Reply logs = server.call("GET", base + "logs?scope=container");
  EXPECT_EQ(logs.text("content"), "2026-01-02T03:04:05Z last words\n");
  EXPECT_TRUE(logs.json().at("truncated").as_bool());
  EXPECT_THAT(server.call("GET", base + "summary").body, HasSubstr("last words"));
  EXPECT_EQ(server.call("DELETE", "/v1/sandboxes/" + id).status, 204);
  EXPECT_EQ(server.call("GET", base + "logs").status, 404);
  Reply afterwards = server.call("GET", base + "events");
  EXPECT_EQ(afterwards.status, 200) << "how it ended stays readable";
  EXPECT_THAT(afterwards.body, AllOf(HasSubstr("ENTRYPOINT_FAILED"), HasSubstr("Deleted")));
}

TEST(Routes, UnknownPathsAndMethodsHaveTheEnvelopeToo) {
  TestServer server;
  Reply unknown = server.call("GET", "/v2/sandboxes");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.text("detail"), "Not Found");
  EXPECT_FALSE(unknown.code().empty());
  EXPECT_FALSE(unknown.text("message").empty());
  EXPECT_FALSE(unknown.text("requestId").empty());
  Reply method = server.call("PUT", "/v1/sandboxes", "{}");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.text("detail"), "Method Not Allowed");
  EXPECT_EQ(method.headers.get("Allow"), "GET, HEAD, POST");
  EXPECT_EQ(server.call("OPTIONS", "/v1/sandboxes").status, 405);
  EXPECT_EQ(server.call("GET", "/").status, 404);
}

TEST(Routes, SlashesAreTolerated) {
  TestServer server;
  std::string id = server.create();
  for (const std::string& path :
       {"//v1/sandboxes/" + id, "/v1/sandboxes/" + id + "/", "///sandboxes/" + id + "//"}) {
    EXPECT_EQ(server.call("GET", path).status, 200) << path;
  }
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/").status, 200);
  EXPECT_EQ(server.call("GET", "/health/").status, 200);
}

TEST(Routes, HeadIsAGetWithoutItsBody) {
  TestServer server;
  std::string id = server.create();
  for (const std::string& path :
       {std::string("/health"), "/v1/sandboxes/" + id, "/v1/sandboxes/" + id + "/"}) {
    Reply reply = server.call("HEAD", path);
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_EQ(reply.body, "");
    EXPECT_EQ(reply.headers.get("Content-Length"), std::to_string(server.call("GET", path).body.size()))
        << path;
  }
  EXPECT_EQ(server.call("HEAD", "/v1/sandboxes/nope").status, 404);
}

TEST(Routes, ARestartKeepsSandboxes) {
  TestServer server;
  std::string id = server.create(R"(,"timeout":600)");
  std::string before = server.call("GET", "/v1/sandboxes/" + id).body;
  server.stop();
  server.start();
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/" + id).body, before);
  EXPECT_TRUE(server.runtime.adopted.contains(id));
}

TEST(Routes, AClientThatGoesAwayDuringCreateLeavesASandboxThatIsKnown) {
  TestServer server;
  server.runtime.hold.reset();
  struct Impatient {
    static io::Task<int> call(TestServer& server) {
      auto socket = co_await io::connect_tcp("127.0.0.1", server.port);
      std::string body = kCreate;
      co_await io::write_all(
          *socket,
          "POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
          "Content-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
      while (server.runtime.creates == 0) co_await io::yield();
      co_return 0;  // closes
    }
  };
  server.loop.await(Impatient::call(server));
  server.loop.settle();
  server.runtime.hold.set();
  server.loop.settle();
  EXPECT_EQ(server.runtime.sandboxes.size(), 1u);
  EXPECT_EQ(server.call("GET", "/v1/sandboxes").json().at("pagination").at("totalItems").as_int64(), 1);
}

}  // namespace
}  // namespace osb::server
