// Who may enter: request ids, keys, pages of other origins, and the cap on requests in flight.

#include "server/gate.h"

#include <gmock/gmock.h>

#include "server/test_server.h"

namespace osb::server {
namespace {

using testing::HasSubstr;

constexpr const char* kKeyed = "[server]\napi_key = \"s3cret\"";
const http::Headers kKey{{"OPEN-SANDBOX-API-KEY", "s3cret"}};

TEST(Gate, EchoesOrMakesARequestId) {
  TestServer server;
  EXPECT_EQ(server.call("GET", "/health", "", {{"X-Request-ID", " abc "}}).headers.get("X-Request-ID"),
            "abc");
  std::string made(server.call("GET", "/nowhere").headers.get("X-Request-ID"));
  EXPECT_EQ(made.size(), 32u);
  EXPECT_EQ(made.find_first_not_of("0123456789abcdef"), std::string::npos);
  std::string endless(5000, 'x');
  EXPECT_EQ(server.call("GET", "/health", "", {{"X-Request-ID", endless}}).headers.get("X-Request-ID").size(),
            32u);
}

TEST(Gate, NeedsTheKey) {
  TestServer server(kKeyed);
  Reply missing = server.call("GET", "/v1/sandboxes");
  EXPECT_EQ(missing.status, 401);
  EXPECT_EQ(missing.code(), "MISSING_API_KEY");
  EXPECT_FALSE(missing.headers.get("X-Request-ID").empty());
  for (const char* wrong : {"S3CRET", "s3cre", "s3crets", "x", " "}) {
    Reply reply = server.call("GET", "/v1/sandboxes", "", {{"OPEN-SANDBOX-API-KEY", wrong}});
    EXPECT_EQ(reply.status, 401) << wrong;
  }
  EXPECT_EQ(server.call("GET", "/v1/sandboxes", "", {{"open-sandbox-api-key", "wrong"}}).code(),
            "INVALID_API_KEY");
  EXPECT_EQ(server.call("GET", "/v1/sandboxes", "", kKey).status, 200);
  EXPECT_EQ(server.call("GET", "/nowhere").status, 401) << "paths are not told to strangers";
  EXPECT_EQ(server.call("GET", "/nowhere", "", kKey).status, 404);
  EXPECT_EQ(server.call("GET", "/health").status, 200);
  EXPECT_EQ(server.call("GET", "/version").status, 200);
  EXPECT_EQ(server.call("GET", "/healthz").status, 401);
  EXPECT_EQ(server.call("GET", "/v1/version").status, 401);
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/x/proxy/80/").status, 404) << "the proxy needs no key";
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/x/proxy/abc/").status, 401);
}

TEST(Gate, TheKeyFromTheEnvironmentWins) {
  TestServer server(kKeyed, {{"OPENSANDBOX_SERVER_API_KEY", "other"}});
  EXPECT_EQ(server.call("GET", "/v1/sandboxes", "", kKey).status, 401);
  EXPECT_EQ(server.call("GET", "/v1/sandboxes", "", {{"OPEN-SANDBOX-API-KEY", "other"}}).status, 200);
}

TEST(Gate, OpenProxyPaths) {
  for (const char* path :
       {"/sandboxes/a/proxy/80", "/sandboxes/a/proxy/80/", "/v1/sandboxes/a/proxy/44772/x/y",
        "/sandboxes/a-b/proxy/1/%2F", "/sandboxes/a/proxy/99999/x"}) {
    EXPECT_TRUE(is_open_proxy_path(path)) << path;
  }
  for (const char* path :
       {"/sandboxes", "/sandboxes/a", "/sandboxes/a/proxy", "/sandboxes/a/proxy/", "/sandboxes/a/proxy/x",
        "/sandboxes/a/proxy/80x", "/sandboxes/a/proxy/-80", "/sandboxes//proxy/80", "/sandboxes/a/b/proxy/80",
        "/v2/sandboxes/a/proxy/80", "/v1/v1/sandboxes/a/proxy/80", "/sandboxes/a/proxy/80/../x",
        "/sandboxes/a/proxy/80/%2e%2e/x", "/sandboxes/../proxy/80", "/sandboxes/a/proxy/80/..",
        "/sandboxes/a/proxy/80/%zz", "/x/sandboxes/a/proxy/80", "/sandboxes/a/proxy/80%2F"}) {
    EXPECT_FALSE(is_open_proxy_path(path)) << path;
  }
}

TEST(Gate, WithoutAKeyOnlyOwnNamesAreServed) {
  TestServer server("[server]\neip = \"gw.example.com:8443/base\"");
  for (const char* host : {"localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:99", "[::1]",
                           "[::1]:8080", "gw.example.com:8443", "gw.example.com", "GW.example.com:1"}) {
    EXPECT_EQ(server.call("GET", "/v1/sandboxes", "", {{"Host", host}}).status, 200) << host;
  }
  for (const char* host : {"evil.example", "evil.example:8080", "10.0.0.5:8080", "localhost.evil.example",
                           "127.0.0.1.nip.example", "0.0.0.0:8080", "[::]", "[fe80::1]:80", "xgw.example.com",
                           "gw.example.com.evil.example"}) {
    Reply reply = server.call("GET", "/v1/sandboxes", "", {{"Host", host}});
    EXPECT_EQ(reply.status, 403) << host;
    EXPECT_EQ(reply.code(), "SANDBOX::HOST_NOT_ALLOWED") << host;
    EXPECT_FALSE(reply.text("remedy").empty());
    EXPECT_EQ(server.call("GET", "/v1/sandboxes/x/proxy/80/", "", {{"Host", host}}).status, 403)
        << "the proxy too";
  }
}

TEST(Gate, WithoutAKeyPagesOfOtherOriginsAreRefused) {
  TestServer server;
  std::string own = "http://" + server.host();
  EXPECT_EQ(server.call("GET", "/v1/sandboxes", "", {{"Origin", own}}).status, 403) << "a sandbox's page";
  const std::string others[] = {"https://evil.example",
                                "null",
                                "http://localhost:3000",
                                "http://127.0.0.1:1",
                                own + ".evil.example",
                                "",
                                "file://"};
  for (const std::string& origin : others) {
    Reply reply = server.call("POST", "/v1/sandboxes", "{}", {{"Origin", origin}});
    EXPECT_EQ(reply.status, 403) << origin;
    EXPECT_EQ(reply.code(), "SANDBOX::ORIGIN_NOT_ALLOWED") << origin;
    EXPECT_FALSE(reply.headers.contains("Access-Control-Allow-Origin"));
  }
  Reply preflight =
      server.call("OPTIONS", "/v1/sandboxes", "",
                  {{"Origin", "https://evil.example"}, {"Access-Control-Request-Method", "POST"}});
  EXPECT_EQ(preflight.status, 403);
  // No Origin, but the browser says where it comes from.
  EXPECT_EQ(
      server.call("GET", "/health", "", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "no-cors"}})
          .status,
      403);
  EXPECT_EQ(
      server.call("GET", "/health", "", {{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Mode", "no-cors"}})
          .status,
      403);
  EXPECT_EQ(
      server.call("GET", "/health", "", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}})
          .status,
      200);
  EXPECT_EQ(server
                .call("GET", "/health", "",
                      {{"Sec-Fetch-Site", "cross-site"},
                       {"Sec-Fetch-Mode", "navigate"},
                       {"Sec-Fetch-Dest", "iframe"}})
                .status,
            403);
  // A page of this server's own origin is one that a sandbox serves: it may not even look at the API.
  EXPECT_EQ(server.call("GET", "/health", "", {{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "cors"}})
                .status,
            403);
  EXPECT_EQ(server
                .call("POST", "/v1/sandboxes", "{}",
                      {{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "navigate"}})
                .status,
            403);
  EXPECT_EQ(
      server.call("GET", "/health", "", {{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "navigate"}})
          .status,
      403);
  EXPECT_EQ(server.call("GET", "/health", "", {{"Referer", own + "/sandboxes/x/proxy/80/"}}).status, 403);
  EXPECT_EQ(server.call("GET", "/health", "", {{"Referer", "http://localhost:1/"}}).status, 200);
  EXPECT_NE(server
                .call("GET", "/sandboxes/x/proxy/8000/", "",
                      {{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "cors"}})
                .status,
            403);
  EXPECT_EQ(
      server.call("GET", "/health", "", {{"Sec-Fetch-Site", "none"}, {"Sec-Fetch-Mode", "navigate"}}).status,
      200);
}

TEST(Gate, PagesReachPortsOfSandboxesAndNoExecd) {
  TestServer server;
  std::string own = "http://" + server.host();
  const http::Headers pages[] = {{{"Origin", own}},
                                 {{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "cors"}},
                                 {{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "navigate"}}};
  for (const http::Headers& page : pages) {
    for (std::string prefix : {"", "/v1"}) {
      EXPECT_EQ(server.call("GET", prefix + "/sandboxes/x/proxy/8000/", "", page).status, 404);
      for (std::string port : {"44772", "044772", "0000000044772"}) {
        EXPECT_EQ(server.call("GET", prefix + "/sandboxes/x/proxy/" + port + "/ping", "", page).status, 403);
        EXPECT_EQ(server.call("POST", prefix + "/sandboxes/x/proxy/" + port, "{}", page).status, 403);
      }
    }
  }
  http::Headers link{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}};
  EXPECT_EQ(server.call("GET", "/sandboxes/x/proxy/8000/", "", link).status, 404);
  EXPECT_EQ(server.call("GET", "/sandboxes/x/proxy/44772/ping", "", link).status, 403);
  EXPECT_EQ(server.call("GET", "/sandboxes/x/proxy/44772/ping").status, 404) << "programs may";
}

TEST(Gate, ServiceWorkersAreRefused) {
  for (std::string_view toml : {"", kKeyed}) {
    TestServer server(toml);
    Reply reply = server.call("GET", "/sandboxes/x/proxy/8000/sw.js", "", {{"Service-Worker", "script"}});
    EXPECT_EQ(reply.status, 403);
    EXPECT_EQ(reply.code(), "SANDBOX::SERVICE_WORKER_REFUSED");
  }
}

TEST(Gate, AnswersOfTheApiAreNoUseToPages) {
  TestServer server;
  for (std::string path : {"/v1/sandboxes", "/health", "/nothing"}) {
    Reply reply = server.call("GET", path);
    EXPECT_THAT(std::string(reply.headers.get("Content-Security-Policy")),
                AllOf(HasSubstr("sandbox;"), HasSubstr("frame-ancestors 'none'")));
    EXPECT_EQ(reply.headers.get("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(reply.headers.get("Cross-Origin-Resource-Policy"), "same-origin");
  }
  std::string page = "/sandboxes/" + server.create() + "/proxy/8000/";
  EXPECT_FALSE(server.call("GET", page).headers.contains("Content-Security-Policy")) << "that is its own";
}

TEST(Gate, ListedOriginsMayCall) {
  TestServer server("[server]\ncors_origins = [\"https://console.example\"]");
  Reply reply = server.call("GET", "/v1/sandboxes", "", {{"Origin", "https://console.example"}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.get("Access-Control-Allow-Origin"), "https://console.example");
  EXPECT_EQ(server.call("GET", "/v1/sandboxes", "", {{"Origin", "https://other.example"}}).status, 403);
}

TEST(Gate, AcknowledgedExposureDropsTheHostCheckOnly) {
  TestServer server("[server]\nhost = \"0.0.0.0\"", {{"OPENSANDBOX_INSECURE_SERVER", "YES"}});
  EXPECT_EQ(server.call("GET", "/v1/sandboxes", "", {{"Host", "sandboxes.svc:8080"}}).status, 200);
  EXPECT_EQ(
      server.call("GET", "/v1/sandboxes", "", {{"Host", "sandboxes.svc"}, {"Origin", "https://evil.example"}})
          .status,
      403);
}

TEST(Gate, WithAKeyCorsIsOpen) {
  TestServer server(kKeyed);
  http::Headers headers = kKey;
  headers.add("Origin", "https://any.example");
  headers.add("Host", "any.name:80");
  Reply reply = server.call("GET", "/v1/sandboxes", "", headers);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.get("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(reply.headers.get("Access-Control-Allow-Credentials"), "true");
  EXPECT_THAT(std::string(reply.headers.get("Access-Control-Expose-Headers")), HasSubstr("X-Request-ID"));
  Reply refused = server.call("GET", "/v1/sandboxes", "", {{"Origin", "https://any.example"}});
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.headers.get("Access-Control-Allow-Origin"), "*")
      << "a page must be able to read the refusal";
  Reply preflight = server.call("OPTIONS", "/v1/sandboxes", "",
                                {{"Origin", "https://any.example"},
                                 {"Access-Control-Request-Method", "POST"},
                                 {"Access-Control-Request-Headers", "open-sandbox-api-key"}});
  EXPECT_EQ(preflight.status, 200) << "a preflight has no key";
  EXPECT_EQ(preflight.body, "OK");
  EXPECT_EQ(preflight.headers.get("Access-Control-Allow-Origin"), "https://any.example");
  EXPECT_EQ(preflight.headers.get("Access-Control-Allow-Headers"), "open-sandbox-api-key");
  EXPECT_FALSE(server.call("GET", "/v1/sandboxes", "", kKey).headers.contains("Access-Control-Allow-Origin"));
}

TEST(Gate, TheCapOnRequestsInFlight) {
  TestServer server("[server]\nlimit_concurrency = 1");
  server.runtime.hold.reset();
  auto slow = server.begin("POST", "/v1/sandboxes",
                           R"({"image":{"uri":"host"},"entrypoint":["a"],"resourceLimits":{}})");
  while (server.runtime.creates == 0) server.loop.settle();
  Reply refused = server.call("PATCH", "/v1/sandboxes/x/metadata", "{}");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.code(), "SANDBOX::OVERLOADED");
  EXPECT_EQ(refused.headers.get("Retry-After"), "1");
  Reply create = server.call("POST", "/sandboxes", "{}");
  EXPECT_EQ(create.status, 429);
  EXPECT_EQ(create.code(), "SANDBOX::TOO_MANY_REQUESTS");
  EXPECT_EQ(create.headers.get("Retry-After"), "1");
  EXPECT_EQ(server.call("GET", "/health").status, 200) << "health is always answered";
  EXPECT_EQ(server.call("GET", "/v1/sandboxes").status, 200);
  EXPECT_EQ(server.call("DELETE", "/v1/sandboxes/x").status, 404) << "deletes are what makes room";
  EXPECT_EQ(server.call("POST", "/v1/sandboxes/x/pause").status, 404);
  server.runtime.hold.set();
  EXPECT_EQ(TestServer::to_reply(server.loop.finish(slow)).status, 202);
  EXPECT_EQ(server.call("GET", "/v1/sandboxes").status, 200);
}

}  // namespace
}  // namespace osb::server
