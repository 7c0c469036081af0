// Who may enter: request ids, keys, pages of other origins, and the cap on requests in flight.

#include "server/gate.h"

#include <gmock/gmock.h>

#include "base/ids.h"
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
  EXPECT_NE(server.call("GET", "/nowhere").headers.get("X-Request-ID"), made);
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
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/x/proxy/80/").status, 401) << "the proxy, too";
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/x/proxy/80/", "", kKey).status, 404);
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/x/proxy/abc/").status, 401);
}

TEST(Gate, TheKeyFromTheEnvironmentWins) {
  TestServer server(kKeyed, {{"OPENSANDBOX_SERVER_API_KEY", "other"}});
  EXPECT_EQ(server.call("GET", "/v1/sandboxes", "", kKey).status, 401);
  EXPECT_EQ(server.call("GET", "/v1/sandboxes", "", {{"OPEN-SANDBOX-API-KEY", "other"}}).status, 200);
}

std::string path_of(const std::string& endpoint) { return endpoint.substr(endpoint.find('/')); }

TEST(Gate, AnIdOpensNothing) {
  TestServer server(kKeyed);
  std::string id = server.create("", kKey), other = server.create("", kKey);
  auto endpoint = [&](std::string_view prefix, const std::string& of, int port) {
    std::string asked = std::string(prefix) + "/sandboxes/" + of + "/endpoints/" + std::to_string(port);
    return path_of(server.call("GET", asked, "", kKey).text("endpoint"));
  };
  Reply unknown = server.call("GET", "/sandboxes/" + new_uuid7() + "/proxy/44772/ping");
  for (const char* prefix : {"", "/v1"}) {
    std::string plain = "/sandboxes/" + id + "/proxy/";
    std::string shell = endpoint(prefix, id, 44772), page = endpoint(prefix, id, 8000);
    EXPECT_THAT(shell, testing::AllOf(testing::StartsWith(std::string(prefix) + "/t/"),
                                      testing::EndsWith(plain + "44772")));
    EXPECT_EQ(server.call("GET", shell + "/ping").status, 200);
    EXPECT_EQ(server.call("GET", page + "/x").status, 200);
    std::string shell_token = shell.substr(0, shell.find("/sandboxes/"));
    std::string page_token = page.substr(0, page.find("/sandboxes/"));
    EXPECT_EQ(server.call("GET", shell_token + plain + "8000/x").status, 200) << "a shell is every page";
    EXPECT_EQ(server.call("GET", prefix + plain + "8000/x", "", kKey).status, 200) << "so is the key";
    std::string foreign = endpoint(prefix, other, 44772);
    foreign = foreign.substr(0, foreign.find("/sandboxes/"));
    const std::string refused[] = {prefix + plain + "44772/ping",
                                   page_token + plain + "44772/command",
                                   page_token + plain + "8001/",
                                   foreign + plain + "44772/ping",
                                   shell_token + "x" + plain + "8000",
                                   std::string(prefix) + "/t/x" + plain + "8000",
                                   shell + "/../../../x",
                                   shell + "/%2e%2e/x"};
    for (const std::string& path : refused) {
      Reply reply = server.call("POST", path, "{}");
      EXPECT_EQ(reply.status, 401) << path;
      EXPECT_EQ(reply.code(), "MISSING_API_KEY") << path;
    }
    Reply known = server.call("GET", prefix + plain + "44772/ping", "", {{"X-Request-ID", "q"}});
    EXPECT_EQ(known.text("message"), unknown.text("message")) << "which ids exist is not told";
    EXPECT_EQ(known.text("remedy"), unknown.text("remedy"));
  }
  EXPECT_EQ(server.runtime.connects, 7)
      << "one kept to execd, six to pages: the refused never got near a sandbox";
}

TEST(Gate, ATokenEndsWithItsSandboxAndOutlivesTheServer) {
  TestServer server(kKeyed);
  std::string id = server.create("", kKey);
  std::string endpoint =
      path_of(server.call("GET", "/sandboxes/" + id + "/endpoints/8000", "", kKey).text("endpoint"));
  server.stop();
  server.start();
  EXPECT_EQ(server.call("GET", endpoint + "/x").status, 200);
  EXPECT_EQ(server.call("DELETE", "/sandboxes/" + id, "", kKey).status, 204);
  EXPECT_EQ(server.call("GET", endpoint + "/x").code(), "SANDBOX::NOT_FOUND");
}

TEST(Gate, AnOpenProxyIsOpen) {
  TestServer server("[proxy]\nopen = true\n" + std::string(kKeyed));
  std::string id = server.create("", kKey);
  EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/proxy/8000/").status, 200);
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/" + id).status, 401) << "the proxy only";
  EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/endpoints/8000", "", kKey).text("endpoint"),
            server.host() + "/sandboxes/" + id + "/proxy/8000");
  EXPECT_EQ(server.call("GET", "/t/x/sandboxes/" + id + "/proxy/8000/").status, 401)
      << "a wrong token stays wrong";
}

TEST(Gate, MessagesHaveNoTokens) {
  TestServer server(kKeyed);
  Reply reply = server.call("GET", "/v1/t/sesame-sesame/sandboxes/x/nothing", "", kKey);
  EXPECT_EQ(reply.status, 404);
  EXPECT_THAT(reply.body, testing::Not(HasSubstr("sesame")));
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
