// The proxy over real sockets: into the sandbox and back.

#include <gmock/gmock.h>

#include "server/test_server.h"

namespace osb::server {
namespace {

using runtime::End;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const http::Headers kKey{{"OPEN-SANDBOX-API-KEY", "s3cret"}};

// The path of a port of a new sandbox, as a client is told it.
std::string new_endpoint(TestServer& server, int port) {
  std::string asked = "/v1/sandboxes/" + server.create("", kKey) + "/endpoints/" + std::to_string(port);
  std::string endpoint = server.call("GET", asked, "", kKey).text("endpoint");
  return endpoint.substr(endpoint.find('/'));
}

TEST(Proxy, RelaysARequestAndItsAnswer) {
  TestServer server("[server]\napi_key = \"s3cret\"");
  std::string base = new_endpoint(server, 44772);
  Reply reply = server.call("POST", base + "/a%2Fb?x=1&x", "payload",
                            {{"OPEN-SANDBOX-API-KEY", "s3cret"},
                             {"Authorization", "Bearer s3cret"},
                             {"X-Any", "s3cret"},
                             {"X-Original-Uri", base},
                             {"X-Mine", "1"}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body,
              AllOf(StartsWith("POST /a%2Fb?x=1&x\n"), HasSubstr("X-Mine: 1\n"), HasSubstr("\n\npayload"),
                    HasSubstr("X-Forwarded-For: 127.0.0.1\n"), Not(HasSubstr("X-Forwarded-Prefix")),
                    Not(HasSubstr("s3cret")), Not(HasSubstr("/t/"))));
  EXPECT_FALSE(reply.headers.contains("Server"));
  EXPECT_NE(reply.headers.get("X-Request-ID"), "theirs");
  EXPECT_EQ(server.call("GET", base + "/teapot").status, 418);
  EXPECT_THAT(server.call("GET", base).body, StartsWith("GET /\n"));
  EXPECT_THAT(server.call("DELETE", base + "/x/").body, StartsWith("DELETE /x/\n"));
  EXPECT_EQ(server.call("HEAD", base + "/x").status, 200);
  EXPECT_THAT(server.call("OPTIONS", base + "/x").body, StartsWith("OPTIONS /x\n"));
}

TEST(Proxy, EditsAnswers) {
  TestServer server;
  std::string base = "/sandboxes/" + server.create() + "/proxy/8000";
  EXPECT_EQ(server.call("GET", base + "/redirect").headers.get("Location"), base + "/next?x=1");
  EXPECT_EQ(server.call("GET", base + "/redirect-away").headers.get("Location"), "//other.example/");
  Reply cookies = server.call("GET", base + "/cookies");
  EXPECT_EQ(std::count_if(cookies.headers.begin(), cookies.headers.end(),
                          [](auto& f) { return f.name == "Set-Cookie"; }),
            2);
}

// The egress process decides what a sandbox reaches: its interface needs a token of its own, which only the
// endpoint answer of that port has, or the key at the lifecycle route.
TEST(Proxy, TheEgressPortNeedsItsToken) {
  TestServer server;
  std::string id = server.create();
  std::string base = "/sandboxes/" + id + "/proxy/18080";
  Reply endpoint = server.call("GET", "/sandboxes/" + id + "/endpoints/18080");
  std::string token = endpoint.json().at("headers").at("OPENSANDBOX-EGRESS-AUTH").as_string().c_str();
  EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/endpoints/8000").body.find("headers"),
            std::string::npos);
  Reply without = server.call("GET", base + "/policy");
  EXPECT_EQ(without.status, 401);
  EXPECT_EQ(without.body, "unauthorized\n");
  EXPECT_EQ(without.headers.get("Content-Type"), "text/plain; charset=utf-8");
  EndpointTokens tokens(std::string(kSecretBytes, 's'));  // as those of the server
  std::string others = tokens.egress_token(server.create());
  for (const std::string& wrong :
       {std::string("x"), token + "x", token.substr(1), others, tokens.token(id, 18080)})
    EXPECT_EQ(server.call("GET", base + "/policy", "", {{"OPENSANDBOX-EGRESS-AUTH", wrong}}).status, 401);
  EXPECT_EQ(server.runtime.connects, 0);
  // Nothing of the request but its body reaches it, the token least of all.
  Reply right =
      server.call("GET", base + "/policy?x=1", "", {{"OPENSANDBOX-EGRESS-AUTH", token}, {"Cookie", "c"}});
  EXPECT_EQ(right.status, 200);
  EXPECT_THAT(right.body, StartsWith("GET /policy?x=1\n"));
  EXPECT_EQ(right.body.find(token), std::string::npos) << right.body;
  EXPECT_THAT(server.call("PATCH", "/v1/sandboxes/" + id + "/networkpolicy", "[]").body,
              StartsWith("PATCH /policy\n"));
  EXPECT_THAT(server.call("GET", "/sandboxes/" + id + "/egress/log?follow=true").body,
              StartsWith("GET /log?follow=true\n"));
  EXPECT_EQ(server.call("GET", "/sandboxes/nope/networkpolicy").code(), "SANDBOX::NOT_FOUND");
}

TEST(Proxy, Refusals) {
  TestServer server;
  std::string id = server.create();
  EXPECT_EQ(server.call("GET", "/sandboxes/nope/proxy/80/").code(), "SANDBOX::NOT_FOUND");
  EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/proxy/0/").code(), "SANDBOX::INVALID_PORT");
  EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/proxy/70000/").code(), "SANDBOX::INVALID_PORT");
  EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/proxy/abc/").status, 422);
  EXPECT_EQ(server.call("POST", "/sandboxes/" + id + "/proxy/18080/credentials", "secret").status, 401);
  for (const char* way : {"/proxy/18080", "/proxy/18080/x", "//proxy/018080/x", "/proxy/44772/proxy/18080/x",
                          "/proxy/44772//proxy/44772/proxy/18080?x", "/%70roxy/18080", "/proxy%2F18080/x",
                          "/proxy/18080/%zz", "/./proxy//18080"}) {
    EXPECT_EQ(server.call("POST", "/sandboxes/" + id + "/proxy/44772" + way, "secret").code(),
              "BACKEND_CONNECTION_FAILED")
        << way;
  }
  EXPECT_EQ(server.runtime.connects, 0);
  for (const char* way :
       {"/proxy/1808", "/proxy/8080/proxy/18080", "/x/proxy/18080", "/proxy", "/proxy/", "/proxys/18080"})
    EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/proxy/44772" + way).status, 200) << way;
  Reply closed = server.call("GET", "/sandboxes/" + id + "/proxy/9/");
  EXPECT_EQ(closed.status, 502);
  EXPECT_EQ(closed.code(), "BACKEND_CONNECTION_FAILED");
  server.runtime.end_of(id, {End::Kind::exited, 3, ""});
  server.loop.settle();
  Reply ended = server.call("GET", "/sandboxes/" + id + "/proxy/44772/ping");
  EXPECT_EQ(ended.status, 403) << "clients that wait for it give up at once";
  EXPECT_EQ(ended.code(), "SANDBOX::NOT_RUNNING");
  EXPECT_THAT(ended.text("message"), HasSubstr("code 3"));
}

TEST(Proxy, WhatCannotBeConnectedToMayBeReachedThroughExecd) {
  TestServer server;
  server.runtime.own_detour = "/proxy/9";
  std::string base = "/sandboxes/" + server.create() + "/proxy/";
  EXPECT_THAT(server.call("GET", base + "9/a%2Fb?x=1").body, StartsWith("GET /proxy/9/a%2Fb?x=1\n"));
  EXPECT_EQ(server.runtime.connects, 2);
  EXPECT_THAT(server.call("GET", base + "8000/x").body, StartsWith("GET /x\n")) << "it answers by itself";
}

// Sends raw bytes and reads until `end` has come.
io::Task<Result<std::string>> talk(uint16_t port,
                                   std::vector<std::pair<std::string, std::string>> exchanges) {
  auto socket = CO_TRY(co_await io::connect_tcp("127.0.0.1", port));
  std::string all;
  for (auto& [send, end] : exchanges) {
    CO_TRY(co_await io::write_all(socket, send));
    std::array<char, 4096> buffer;
    while (all.find(end) == std::string::npos) {
      size_t got = CO_TRY(co_await io::read_some(socket, buffer));
      if (got == 0) co_return fail(Code::unavailable, "closed after: " + all);
      all.append(buffer.data(), got);
    }
  }
  co_return all;
}

TEST(Proxy, TunnelsUpgrades) {
  TestServer server("[server]\napi_key = \"s3cret\"");
  std::string head = "GET " + new_endpoint(server, 8000) +
                     "/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  auto all =
      server.loop.await(talk(server.port, {{head, "\r\n\r\n"}, {"one", "echo:one"}, {"two", "echo:two"}}));
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(*all, AllOf(StartsWith("HTTP/1.1 101 "), HasSubstr("X-Request-ID: ")));
}

TEST(Proxy, KeepsConnectionsToExecdOnly) {
  TestServer server;
  std::string a = server.create(), b = server.create();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(server.call("GET", "/sandboxes/" + a + "/proxy/44772/ping").status, 200);
  EXPECT_EQ(server.runtime.connects, 1);
  EXPECT_EQ(server.call("POST", "/sandboxes/" + a + "/proxy/44772/x", "body").status, 200);
  EXPECT_EQ(server.runtime.connects, 1);
  EXPECT_EQ(server.call("GET", "/sandboxes/" + b + "/proxy/44772/ping").status, 200);
  EXPECT_EQ(server.runtime.connects, 2) << "another sandbox has its own";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(server.call("GET", "/sandboxes/" + a + "/proxy/8000/").status, 200);
  EXPECT_EQ(server.runtime.connects, 4);
}

// A kept connection ends in the moment it is used: what may have had an effect is not sent again.
TEST(Proxy, RepeatsOnlyWhatIsSafe) {
  TestServer server;
  broken_targets().clear();
  std::string base = "/sandboxes/" + server.create() + "/proxy/44772";
  struct Case {
    const char *method, *body;
    bool repeated;
  };
  const Case cases[] = {{"GET", "", true},      {"HEAD", "", true},   {"OPTIONS", "", true},
                        {"PUT", "", true},      {"DELETE", "", true}, {"POST", "", false},
                        {"PATCH", "", false},   {"GET", "x", false},  {"PUT", "x", false},
                        {"DELETE", "x", false}, {"POST", "x", false}, {"PATCH", "x", false},
                        {"PROPFIND", "", false}};
  for (const Case& c : cases) {
    ASSERT_EQ(server.call("GET", base + "/ping").status, 200);  // leaves a connection to be kept
    std::string target = "/breaks/" + std::string(c.method) + c.body;
    Reply reply = server.call(c.method, base + target, c.body);
    EXPECT_EQ(reply.status, c.repeated ? 200 : 502) << target;
    EXPECT_EQ(broken_targets()[target], c.repeated ? 2 : 1) << target;
  }
}

TEST(Proxy, ANewConnectionThatBreaksIsNotRepeated) {
  TestServer server;
  broken_targets().clear();
  std::string id = server.create();
  for (const char* port : {"44772", "8000"}) {
    std::string target = std::string("/breaks/") + port;
    Reply reply = server.call("GET", "/sandboxes/" + id + "/proxy/" + port + target);
    EXPECT_EQ(reply.code(), "BACKEND_RESPONSE_FAILED") << port;
    EXPECT_EQ(broken_targets()[target], 1) << port;
  }
}

io::Task<Result<io::Socket>> open_tunnel(uint16_t port, std::string path) {
  auto socket = CO_TRY(co_await io::connect_tcp("127.0.0.1", port));
  CO_TRY(co_await io::write_all(socket, "GET " + path +
                                            " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                                            "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
  std::string all;
  std::array<char, 4096> buffer;
  while (all.find("\r\n\r\n") == std::string::npos) {
    size_t got = CO_TRY(co_await io::read_some(socket, buffer));
    if (got == 0) co_return fail(Code::unavailable, "closed");
    all.append(buffer.data(), got);
  }
  if (!all.starts_with("HTTP/1.1 101 ")) co_return fail(Code::unavailable, all);
  co_return socket;
}

TEST(Proxy, ASandboxTakesOnlySoManyPlaces) {
  TestServer server("[proxy]\nmax_in_flight_per_sandbox = 2");
  std::string busy = server.create(), other = server.create();
  std::string base = "/sandboxes/" + busy + "/proxy/";
  auto first = server.loop.await(open_tunnel(server.port, base + "8000/ws"));
  auto second = server.loop.await(open_tunnel(server.port, base + "8001/ws"));
  ASSERT_TRUE(first && second);
  for (const char* port : {"44772/ping", "8000/", "8002/ws"}) {
    Reply refused = server.call("GET", base + port);
    EXPECT_EQ(refused.status, 503) << port;
    EXPECT_EQ(refused.code(), "SANDBOX::OVERLOADED") << port;
    EXPECT_EQ(refused.headers.get("Retry-After"), "1") << port;
  }
  EXPECT_EQ(server.runtime.connects, 2) << "what is refused reaches nothing";
  EXPECT_EQ(server.call("GET", "/sandboxes/" + other + "/proxy/44772/ping").status, 200);
  EXPECT_EQ(server.call("GET", "/sandboxes/" + busy).status, 200) << "the API is not counted";
  first->close();
  server.loop.settle();
  EXPECT_EQ(server.call("GET", base + "44772/ping").status, 200);
  second->close();
}

TEST(Proxy, ATrustedProxyIsBelieved) {
  http::Headers said{{"X-Forwarded-For", "6.6.6.6, 1.2.3.4"},
                     {"X-Forwarded-Host", "front.example"},
                     {"X-Forwarded-Proto", "https"}};
  for (bool trusted : {false, true}) {
    TestServer server(trusted ? "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]" : "");
    std::string id = server.create();
    std::string seen = server.call("GET", "/sandboxes/" + id + "/proxy/8000/", "", said).body;
    EXPECT_THAT(
        seen, HasSubstr(trusted ? "X-Forwarded-For: 1.2.3.4, 127.0.0.1\n" : "X-Forwarded-For: 127.0.0.1\n"));
    EXPECT_THAT(seen, HasSubstr(trusted ? "X-Forwarded-Proto: https\n" : "X-Forwarded-Proto: http\n"));
    EXPECT_THAT(seen, HasSubstr("X-Forwarded-Host: " + (trusted ? "front.example" : server.host()) + "\n"));
    EXPECT_THAT(server.call("GET", "/sandboxes/" + id + "/endpoints/8000", "", said).text("endpoint"),
                StartsWith((trusted ? "front.example" : server.host()) + "/sandboxes/"));
  }
}

TEST(Proxy, ConnectionsThatAreNoSockets) {
  TestServer server;
  server.runtime.foreign_streams = true;
  std::string id = server.create(), base = "/sandboxes/" + id + "/proxy/";
  std::string payload(300'000, 'x');
  Reply reply = server.call("POST", base + "44772/a", payload);
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, AllOf(StartsWith("POST /a\n"), HasSubstr("\n\n" + payload)));
  EXPECT_EQ(server.call("GET", base + "44772/b").status, 200);
  EXPECT_EQ(server.runtime.connects, 1) << "they are kept, too";
  std::string head = "GET " + base + "8000/ws HTTP/1.1\r\nHost: " + server.host() +
                     "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  auto all =
      server.loop.await(talk(server.port, {{head, "\r\n\r\n"}, {"one", "echo:one"}, {"two", "echo:two"}}));
  ASSERT_TRUE(all) << all.error().message;
}

}  // namespace
}  // namespace osb::server
