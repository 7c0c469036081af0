#include "server/proxy_headers.h"

#include <gmock/gmock.h>

namespace osb::server {
namespace {

http::Request request_for(std::string target, std::string rest, http::Headers headers) {
  http::Request request;
  request.head = {"GET", std::move(target), true, std::move(headers)};
  request.rest = std::move(rest);
  request.peer = "203.0.113.9";
  return request;
}

const ProxyTarget kTarget{"/v1/sandboxes/x/proxy/8000", 8000};
const Secrets kNone{};
const Key kKeys[] = {{"default", "the-key-1"}};
const Secrets kSecrets{.keys = kKeys, .token = "T0ken_-token"};

// Whatever their names: SDKs send the key under several, and proxies in front of us add what they saw.
TEST(ProxyHeaders, SecretsStayWhateverTheirNames) {
  const char* staying[] = {"the-key-1",    "Bearer the-key-1", "token=the-key-1; x",
                           "a, the-key-1", "\"the-key-1\"",    "/t/T0ken_-token/sandboxes/x/proxy/8000/a",
                           "T0ken_-token"};
  const char* crossing[] = {"the-key-12", "xthe-key-1",    "the-key-",
                            "THE-KEY-1",  "T0ken_-token2", "/t/other/x"};
  http::Headers sent;
  for (const char* value : staying) sent.add("X-Any", value);
  for (const char* value : crossing) sent.add("X-Crossing", value);
  sent.add("X-EXECD-ACCESS-TOKEN", "the-key-1");
  sent.add("Sec-WebSocket-Protocol", "base64, the-key-1");
  sent.add("Host", "the-key-1");
  auto head = upstream_head(request_for("/v1/sandboxes/x/proxy/8000", "", sent), kTarget, kSecrets);
  for (const char* name : {"X-Any", "X-EXECD-ACCESS-TOKEN", "Sec-WebSocket-Protocol", "X-Forwarded-Host"})
    EXPECT_FALSE(head.headers.contains(name)) << name << ": " << head.headers.get(name);
  auto crossed =
      std::count_if(head.headers.begin(), head.headers.end(), [](auto& f) { return f.name == "X-Crossing"; });
  EXPECT_EQ(crossed, static_cast<ptrdiff_t>(std::size(crossing)));
}

TEST(ProxyHeaders, ParametersWithSecretsStay) {
  const std::pair<const char*, const char*> cases[] = {
      {"?a=1&k=the-key-1&b=%20", "?a=1&b=%20"},
      {"?k=the-key-1", ""},
      {"?k=the%2Dkey%2d1&x", "?x"},
      {"?the-key-1", ""},
      {"?u=%2Ft%2FT0ken_-token%2Fsandboxes&&c=1", "?&c=1"},
      {"?k=the-key-12&a=%zz", "?k=the-key-12&a=%zz"},
      {"?", "?"},
  };
  for (auto [before, after] : cases) {
    auto request = request_for(std::string(kTarget.prefix) + "/p" + before, "/p", {});
    EXPECT_EQ(upstream_head(request, kTarget, kSecrets).target, std::string("/p") + after) << before;
  }
}

TEST(ProxyHeaders, RefererIsCutToItsOrigin) {
  const std::pair<const char*, const char*> cases[] = {
      {"http://gw.example:8080/t/anybodys/sandboxes/y/proxy/80/x?y#z", "http://gw.example:8080/"},
      {"https://gw.example", "https://gw.example/"},
      {"/t/anybodys/sandboxes/y", ""},
      {"about:blank", ""},
  };
  for (auto [before, after] : cases) {
    auto request = request_for("/v1/sandboxes/x/proxy/8000", "", {{"referer", before}});
    EXPECT_EQ(upstream_head(request, kTarget, kSecrets).headers.get("Referer"), after) << before;
    EXPECT_EQ(upstream_head(request, kTarget, kNone).headers.get("Referer"), before) << "without a key";
  }
}

TEST(ProxyHeaders, PathAndQueryAreForwardedAsTheyCame) {
  struct Case {
    const char *rest, *query, *expected;
  };
  const Case cases[] = {
      {"", "", "/"},
      {"/", "", "/"},
      {"/a/b", "", "/a/b"},
      {"/a/", "", "/a/"},
      {"//a", "", "/a"},
      {"///a//b", "", "/a//b"},
      {"/a%2Fb%3Fc%23", "", "/a%2Fb%3Fc%23"},
      {"/a/../b", "", "/a/../b"},
      {"", "?", "/?"},
      {"", "?x", "/?x"},
      {"/p", "?a=1&a=2&b=%2F+%20&c", "/p?a=1&a=2&b=%2F+%20&c"},
      {"/p", "?q=a?b", "/p?q=a?b"},
  };
  for (const Case& c : cases) {
    auto request = request_for(std::string(kTarget.prefix) + c.rest + c.query, c.rest, {});
    EXPECT_EQ(upstream_head(request, kTarget, kNone).target, c.expected) << c.rest << c.query;
  }
}

TEST(ProxyHeaders, WhatCrosses) {
  http::Headers sent;
  const char* crossing[] = {"Accept",
                            "Content-Type",
                            "X-EXECD-ACCESS-TOKEN",
                            "OPENSANDBOX-EGRESS-AUTH",
                            "Origin",
                            "Range",
                            "User-Agent",
                            "X-Custom",
                            "X-Request-ID",
                            "Sec-WebSocket-Key",
                            "OPEN-SANDBOX-CLIENT-IP"};
  const char* staying[] = {"Authorization",
                           "cookie",
                           "Open-Sandbox-Api-Key",
                           "OpenSandbox-Secure-Access",
                           "Forwarded",
                           "X-Forwarded-Port",
                           "X-Real-IP",
                           "opensandbox-access-renew",
                           "Expect",
                           "Connection",
                           "Keep-Alive",
                           "TE",
                           "Transfer-Encoding",
                           "Upgrade",
                           "Proxy-Authorization"};
  for (const char* name : crossing) sent.add(name, "v");
  for (const char* name : staying) sent.add(name, "secret");
  sent.add("X-Custom", "twice");
  auto head = upstream_head(request_for("/v1/sandboxes/x/proxy/8000", "", sent), kTarget, kNone);
  for (const char* name : crossing) EXPECT_EQ(head.headers.get(name), "v") << name;
  for (const auto& [name, value] : head.headers) EXPECT_NE(value, "secret") << name;
  auto customs =
      std::count_if(head.headers.begin(), head.headers.end(), [](auto& f) { return f.name == "X-Custom"; });
  EXPECT_EQ(customs, 2) << "repeated fields stay repeated";
}

TEST(ProxyHeaders, ForwardingFieldsAreOfThisConnection) {
  http::Headers sent{{"Host", "front.example:1"},
                     {"X-Forwarded-For", "1.2.3.4"},
                     {"X-Forwarded-Host", "forged"},
                     {"X-Forwarded-Proto", "https"},
                     {"x-forwarded-prefix", "/forged"}};
  auto head = upstream_head(request_for("/v1/sandboxes/x/proxy/8000", "", sent), kTarget, kNone);
  const std::pair<const char*, const char*> expected[] = {
      {"Host", "127.0.0.1:8000"},
      {"X-Forwarded-For", "203.0.113.9"},
      {"X-Forwarded-Host", "front.example:1"},
      {"X-Forwarded-Proto", "http"},
  };
  for (auto [name, value] : expected) {
    auto count =
        std::count_if(head.headers.begin(), head.headers.end(), [&](auto& f) { return f.name == name; });
    EXPECT_EQ(count, 1) << name;
    EXPECT_EQ(head.headers.get(name), value) << name;
  }
}

TEST(ProxyHeaders, ForwardingFieldsOfATrustedProxy) {
  const sandbox::IpPrefix trusted[] = {sandbox::parse_target("203.0.113.0/24")->prefix};
  http::Headers sent{{"Host", "back.example"},
                     {"X-Forwarded-For", "6.6.6.6, 1.2.3.4"},
                     {"X-Forwarded-Host", "front.example:1"},
                     {"X-Forwarded-Proto", "https"},
                     {"X-Forwarded-Prefix", "/forged"}};
  auto head = upstream_head(request_for("/v1/sandboxes/x/proxy/8000", "", sent), kTarget, kNone, trusted);
  EXPECT_EQ(head.headers.get("Host"), "127.0.0.1:8000");
  EXPECT_EQ(head.headers.get("X-Forwarded-For"), "1.2.3.4, 203.0.113.9");
  EXPECT_EQ(head.headers.get("X-Forwarded-Host"), "front.example:1");
  EXPECT_EQ(head.headers.get("X-Forwarded-Proto"), "https");
  EXPECT_FALSE(head.headers.contains("X-Forwarded-Prefix"));
  http::Headers with_token{{"Host", "x"}, {"X-Forwarded-Host", "T0ken_-token"}};
  head = upstream_head(request_for("/v1/sandboxes/x/proxy/8000", "", with_token), kTarget, kSecrets, trusted);
  EXPECT_FALSE(head.headers.contains("X-Forwarded-Host"));
}

TEST(ProxyHeaders, AClientCannotNameFieldsOfOurs) {
  http::Headers sent{
      {"Connection", "close, X-Forwarded-For, host, X-Mine"}, {"X-Mine", "1"}, {"X-Other", "2"}};
  auto head = upstream_head(request_for("/v1/sandboxes/x/proxy/8000", "", sent), kTarget, kNone);
  EXPECT_EQ(head.headers.get("X-Forwarded-For"), "203.0.113.9");
  EXPECT_EQ(head.headers.get("Host"), "127.0.0.1:8000");
  EXPECT_FALSE(head.headers.contains("X-Mine"));
  EXPECT_TRUE(head.headers.contains("X-Other"));
}

TEST(ProxyHeaders, AnswersAreEdited) {
  const std::pair<const char*, const char*> locations[] = {
      {"/next", "/p/next"}, {"/", "/p/"},       {"/a?b=/c", "/p/a?b=/c"},           {"//host/x", "//host/x"},
      {"next", "next"},     {"../up", "../up"}, {"http://host/x", "http://host/x"}, {"?q", "?q"},
      {"#f", "#f"},
  };
  for (auto [before, after] : locations) {
    http::ResponseHead head{
        302, {{"Location", before}, {"Server", "s"}, {"X-Request-ID", "theirs"}, {"Date", "d"}}};
    edit_upstream_response(head, "/p");
    EXPECT_EQ(head.headers.get("Location"), after);
    EXPECT_FALSE(head.headers.contains("Server"));
    EXPECT_FALSE(head.headers.contains("X-Request-ID"));
    EXPECT_EQ(head.headers.get("Date"), "d");
  }
  http::ResponseHead plain{200, {{"Set-Cookie", "a"}, {"Set-Cookie", "b"}}};
  edit_upstream_response(plain, "/p");
  EXPECT_EQ(plain.headers.size(), 3u);
  EXPECT_EQ(plain.headers.get("Referrer-Policy"), "origin");
  EXPECT_EQ(plain.headers.get("Set-Cookie"), "a; Path=/p/");
  http::ResponseHead loose{200, {{"Referrer-Policy", "unsafe-url"}, {"referrer-policy", "unsafe-url"}}};
  edit_upstream_response(loose, "/p");
  EXPECT_EQ(loose.headers.size(), 1u);
  EXPECT_EQ(loose.headers.get("Referrer-Policy"), "origin");
  http::ResponseHead strict{200, {{"Referrer-Policy", "no-referrer"}}};
  edit_upstream_response(strict, "/p");
  EXPECT_EQ(strict.headers.get("Referrer-Policy"), "no-referrer");
}

TEST(ProxyHeaders, ThePrefixThatClientsSee) {
  Config config;
  EXPECT_EQ(visible_prefix(config, kTarget), "/v1/sandboxes/x/proxy/8000");
  config.server.eip = "gw.example.com";
  EXPECT_EQ(visible_prefix(config, kTarget), "/sandboxes/x/proxy/8000");
  config.server.eip = "gw.example.com/base/v1";
  EXPECT_EQ(visible_prefix(config, kTarget), "/base/v1/sandboxes/x/proxy/8000");
  const ProxyTarget tokened{"/v1/t/T/sandboxes/x/proxy/8000", 8000};
  EXPECT_EQ(visible_prefix(config, tokened), "/base/v1/t/T/sandboxes/x/proxy/8000");
  config.server.eip = "";
  EXPECT_EQ(visible_prefix(config, tokened), "/v1/t/T/sandboxes/x/proxy/8000");
}

}  // namespace
}  // namespace osb::server
