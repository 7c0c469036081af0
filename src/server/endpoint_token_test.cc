#include "server/endpoint_token.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <set>

#include "base/fd.h"
#include "base/ids.h"
#include "http/router.h"
#include "runtime/runtime.h"

namespace osb::server {
namespace {

const std::string kId = "0198c0de-0000-7000-8000-000000000001";
const std::string kOther = "0198c0de-0000-7000-8000-000000000002";
const EndpointTokens kTokens(std::string(kSecretBytes, 's'));

TEST(EndpointToken, NeedsNoEscapeAndIsAlwaysTheSame) {
  std::string token = kTokens.token(kId, 8080);
  EXPECT_EQ(token.size(), 24u);
  EXPECT_EQ(token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
            token.npos);
  // Written down: endpoints that clients hold must survive every later version.
  EXPECT_EQ(token, EndpointTokens(std::string(kSecretBytes, 's')).token(kId, 8080));
  EXPECT_NE(token, EndpointTokens(std::string(kSecretBytes, 'x')).token(kId, 8080));
}

TEST(EndpointToken, IsOfOneSandboxAndOnePort) {
  std::set<std::string> all;
  for (const std::string& id : {kId, kOther}) {
    for (uint16_t port : {1, 2, 22, 8080, 18080, 44772, 65535}) all.insert(kTokens.token(id, port));
  }
  EXPECT_EQ(all.size(), 14u);
  EXPECT_TRUE(kTokens.opens(kTokens.token(kId, 8080), kId, 8080));
  EXPECT_FALSE(kTokens.opens(kTokens.token(kId, 8080), kId, 8081));
  EXPECT_FALSE(kTokens.opens(kTokens.token(kId, 8080), kId, runtime::kExecdPort)) << "a page is no shell";
  EXPECT_FALSE(kTokens.opens(kTokens.token(kId, 8080), kOther, 8080));
  for (uint16_t port : {1, 8080, 18080, 44772, 65535}) {
    EXPECT_TRUE(kTokens.opens(kTokens.token(kId, runtime::kExecdPort), kId, port)) << "a shell is every page";
    EXPECT_FALSE(kTokens.opens(kTokens.token(kId, runtime::kExecdPort), kOther, port));
  }
}

TEST(EndpointToken, NothingElseOpens) {
  std::string right = kTokens.token(kId, 8080);
  std::string swapped = right;
  swapped[3] = swapped[3] == 'A' ? 'B' : 'A';
  const std::string wrong[] = {"",
                               "-",
                               right.substr(0, 23),
                               right.substr(1),
                               right + "=",
                               right + "A",
                               right + right,
                               swapped,
                               " " + right,
                               right + " ",
                               std::string(10'000, 'A'),
                               std::string(24, 'A'),
                               std::string(24, '\0')};
  for (const std::string& token : wrong) EXPECT_FALSE(kTokens.opens(token, kId, 8080)) << token.substr(0, 40);
}

TEST(EndpointToken, TheSecretHasItsSize) {
  std::string path = testing::TempDir() + "endpoint_token_test." + new_hex_id();
  EXPECT_FALSE(EndpointTokens::open(path));
  for (const char* content : {"", "short", "longer than the thirty-two bytes that it has"}) {
    ASSERT_TRUE(write_file(path, content, O_CREAT | O_TRUNC));
    EXPECT_FALSE(EndpointTokens::open(path)) << content;
  }
  ASSERT_TRUE(write_file(path, std::string(kSecretBytes, 's'), O_CREAT | O_TRUNC));
  auto opened = EndpointTokens::open(path);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->token(kId, 80), kTokens.token(kId, 80));
  ::unlink(path.c_str());
}

const char* const kProxied[] = {"/sandboxes/a/proxy/80",
                                "/sandboxes/a/proxy/80/",
                                "/v1/sandboxes/a/proxy/44772/x/y",
                                "/sandboxes/a-b/proxy/1/%2F",
                                "/sandboxes/a/proxy/99999/x",
                                "/t/T/sandboxes/a/proxy/80",
                                "/v1/t/T-_9/sandboxes/a/proxy/080/x//y",
                                "/t/t/sandboxes/t/proxy/1/t/x/sandboxes/b/proxy/2",
                                "/t/sandboxes/sandboxes/proxy/proxy/1"};

TEST(ProxyPath, PlainSpellings) {
  for (const char* path : kProxied) EXPECT_TRUE(parse_proxy_path(path)) << path;
  auto found = parse_proxy_path("/v1/t/T/sandboxes/a/proxy/80/x");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->token, "T");
  EXPECT_EQ(found->id, "a");
  EXPECT_EQ(found->port, "80");
  EXPECT_EQ(parse_proxy_path("/sandboxes/a/proxy/80")->token, "");
}

TEST(ProxyPath, EverythingElseIsNone) {
  for (const char* path : {"",
                           "/",
                           "/sandboxes",
                           "/sandboxes/a",
                           "/sandboxes/a/proxy",
                           "/sandboxes/a/proxy/",
                           "/sandboxes/a/proxy/x",
                           "/sandboxes/a/proxy/80x",
                           "/sandboxes/a/proxy/-80",
                           "/sandboxes/a/proxy/+80",
                           "/sandboxes//proxy/80",
                           "/sandboxes/a/b/proxy/80",
                           "/v2/sandboxes/a/proxy/80",
                           "/v1/v1/sandboxes/a/proxy/80",
                           "/sandboxes/a/proxy/80/../x",
                           "/sandboxes/a/proxy/80/%2e%2e/x",
                           "/sandboxes/../proxy/80",
                           "/sandboxes/./proxy/80",
                           "/sandboxes/a/proxy/80/..",
                           "/sandboxes/a/proxy/80/%zz",
                           "/x/sandboxes/a/proxy/80",
                           "/sandboxes/a/proxy/80%2F",
                           "/sandboxes/%61/proxy/80",
                           "/sandboxes/a/%70roxy/80",
                           "/sandboxes/a/proxy/%38",
                           "/sandboxes%2Fa%2Fproxy%2F80",
                           "/v1//sandboxes/a/proxy/80",
                           "/t/sandboxes/a/proxy/80",
                           "/t//sandboxes/a/proxy/80",
                           "/t/%54/sandboxes/a/proxy/80",
                           "/t/T/t/T/sandboxes/a/proxy/80",
                           "/t/T/v1/sandboxes/a/proxy/80",
                           "/t/../sandboxes/a/proxy/80",
                           "/t/T//sandboxes/a/proxy/80",
                           "/T/T/sandboxes/a/proxy/80",
                           "/t/T/sandboxes/a/endpoints/80",
                           "/v1/t/T/sandboxes",
                           "/t/T/Sandboxes/a/proxy/80"}) {
    EXPECT_FALSE(parse_proxy_path(path)) << path;
  }
}

// What is authorised and what the handler gets must be the same sandbox and port.
TEST(ProxyPath, TheRouterReadsTheSame) {
  http::Router router;
  for (std::string prefix : {"/v1/t/{token}", "/t/{token}", "/v1", ""}) {
    router.add("*", prefix + "/sandboxes/{id}/proxy/{port}{rest...}",
               [](http::Request&, http::ResponseWriter&) -> io::Task<> { co_return; });
  }
  for (const char* path : kProxied) {
    auto found = parse_proxy_path(path);
    auto match = router.find("GET", path);
    ASSERT_TRUE(found && match.handler) << path;
    EXPECT_EQ(match.params["id"], found->id) << path;
    EXPECT_EQ(match.params["port"], found->port) << path;
    EXPECT_EQ(match.params["token"], found->token) << path;
  }
}

TEST(ProxyPath, LogsHaveNoTokens) {
  EXPECT_EQ(without_token("/v1/t/abc/sandboxes/x/proxy/80/t/y"), "/v1/t/-/sandboxes/x/proxy/80/t/y");
  EXPECT_EQ(without_token("/t/abc/sandboxes/x/nothing"), "/t/-/sandboxes/x/nothing");
  EXPECT_EQ(without_token("/t/abc"), "/t/-");
  EXPECT_EQ(without_token("/v1/t/abc"), "/v1/t/-");
  for (const char* path : {"/", "", "/t", "/v1/sandboxes/x", "/sandboxes/t/proxy/80"})
    EXPECT_EQ(without_token(path), path);
}

WallTime at(int64_t second) { return WallTime(std::chrono::seconds(second)); }

std::string signed_path(const std::string& id, uint16_t port, uint64_t expires) {
  return "/s/" + kTokens.sign(id, port, expires) + "/sandboxes/" + id + "/proxy/" + std::to_string(port);
}

Signature check(const std::string& path, WallTime now) {
  auto parsed = parse_proxy_path(path);
  return parsed ? kTokens.check(*parsed, now) : Signature::none;
}

TEST(SignedEndpoint, HoldsUntilItsSecondIsOver) {
  std::string path = signed_path(kId, 8080, 2000000000);
  EXPECT_THAT(path, testing::StartsWith("/s/x2qxvk/"));
  EXPECT_EQ(check(path, at(1999999999)), Signature::valid);
  EXPECT_EQ(check(path, at(2000000000) + std::chrono::milliseconds(999)), Signature::valid);
  EXPECT_EQ(check(path, at(2000000001)), Signature::expired);
  EXPECT_EQ(check("/v1" + path + "/a/b", at(5)), Signature::valid);
  EXPECT_EQ(check("/sandboxes/" + kId + "/proxy/8080", at(5)), Signature::none);
  EXPECT_EQ(check(signed_path(kId, 8080, UINT64_MAX), at(2000000000)), Signature::valid);
}

TEST(SignedEndpoint, IsOfOneSandboxOnePortAndOneMoment) {
  std::string path = signed_path(kId, 8080, 2000000000);
  auto with = [&](const std::string& from, const std::string& to) {
    std::string other = path;
    return other.replace(other.find(from), from.size(), to);
  };
  for (const std::string& other :
       {with("/proxy/8080", "/proxy/8081"), with(kId, kOther), with("x2qxvk", "x2qxvl"),
        with("x2qxvk", "0x2qxvk"), with("x2qxvk", "X2QXVK"), with("x2qxvk", "-1"),
        with("x2qxvk", "3w5e11264sgsg0"), path.substr(0, 20) + path.substr(21)}) {
    EXPECT_EQ(check(other, at(5)), Signature::wrong) << other;
  }
  EXPECT_FALSE(kTokens.opens(parse_proxy_path(path)->signature, kId, 8080)) << "no token without an end";
}

TEST(SignedEndpoint, IsNotWrittenToLogs) {
  std::string shown = without_token("/v1" + signed_path(kId, 80, 2000000000) + "/x");
  EXPECT_EQ(shown, "/v1/s/x2qxvk/-/sandboxes/" + kId + "/proxy/80/x");
}

}  // namespace
}  // namespace osb::server
