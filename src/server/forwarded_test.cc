#include "server/forwarded.h"

#include <gtest/gtest.h>

namespace osb::server {
namespace {

const sandbox::IpPrefix kTrusted[] = {sandbox::parse_target("10.0.0.0/8")->prefix,
                                      sandbox::parse_target("2001:db8::/32")->prefix};

http::Request request_from(std::string peer, http::Headers headers) {
  http::Request request;
  request.head = {"GET", "/", true, std::move(headers)};
  request.peer = std::move(peer);
  return request;
}

TEST(Forwarded, AnybodyElseIsNotBelieved) {
  http::Headers said{{"Host", "here"},
                     {"X-Forwarded-For", "6.6.6.6"},
                     {"X-Forwarded-Host", "forged"},
                     {"X-Forwarded-Proto", "https"}};
  for (const char* peer : {"11.0.0.1", "127.0.0.1", "::1", "2001:db9::1", ""}) {
    Forwarded from = forwarded(request_from(peer, said), kTrusted);
    EXPECT_EQ(from.addresses, peer);
    EXPECT_EQ(from.host, "here") << peer;
    EXPECT_EQ(from.protocol, "http") << peer;
  }
  Forwarded from = forwarded(request_from("10.0.0.1", said), {});
  EXPECT_EQ(from.addresses, "10.0.0.1");
  EXPECT_EQ(from.host, "here");
  EXPECT_EQ(from.protocol, "http");
}

TEST(Forwarded, TheChainIsBelievedAsFarAsTrustedOnesMadeIt) {
  struct Case {
    std::vector<const char*> fields;
    const char* addresses;
  };
  const Case cases[] = {
      {{}, "10.0.0.1"},
      {{"1.2.3.4"}, "1.2.3.4, 10.0.0.1"},
      {{" 1.2.3.4 "}, "1.2.3.4, 10.0.0.1"},
      {{"6.6.6.6, 1.2.3.4"}, "1.2.3.4, 10.0.0.1"},  // what the client claims
      {{"6.6.6.6", "1.2.3.4"}, "1.2.3.4, 10.0.0.1"},
      {{"1.2.3.4, 10.0.0.2"}, "1.2.3.4, 10.0.0.2, 10.0.0.1"},
      {{"1.2.3.4,10.0.0.3", "10.0.0.2"}, "1.2.3.4, 10.0.0.3, 10.0.0.2, 10.0.0.1"},
      {{"2001:DB8::7"}, "2001:db8::7, 10.0.0.1"},
      {{"6.6.6.6, ::ffff:10.0.0.9"}, "6.6.6.6, 10.0.0.9, 10.0.0.1"},
      {{"1.2.3.4, unknown"}, "10.0.0.1"},
      {{"1.2.3.4, unknown, 10.0.0.2"}, "10.0.0.2, 10.0.0.1"},
      {{""}, "10.0.0.1"},
      {{","}, "10.0.0.1"},
      {{"1.2.3.4,"}, "10.0.0.1"},
      {{"1.2.3.4:80"}, "10.0.0.1"},
      {{"[2001:db8::7]"}, "10.0.0.1"},
      {{"1.2.3.4 5.6.7.8"}, "10.0.0.1"},
      {{"1.2.3"}, "10.0.0.1"},
  };
  for (const Case& c : cases) {
    http::Headers headers;
    for (const char* field : c.fields) headers.add("x-forwarded-for", field);
    EXPECT_EQ(forwarded(request_from("10.0.0.1", headers), kTrusted).addresses, c.addresses);
  }
}

TEST(Forwarded, AChainHasAnEnd) {
  std::string chain;
  for (int i = 0; i < 2000; ++i) chain += "10.0.0.7, ";
  std::string seen =
      forwarded(request_from("10.0.0.1", {{"X-Forwarded-For", chain + "10.0.0.7"}}), kTrusted).addresses;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), ','), 16);
}

TEST(Forwarded, NameAndProtocol) {
  struct Case {
    http::Headers headers;
    const char *host, *protocol;
  };
  const Case cases[] = {
      {{{"X-Forwarded-Host", "front.example:8443"}, {"X-Forwarded-Proto", "https"}},
       "front.example:8443",
       "https"},
      {{{"X-Forwarded-Host", " [::1]:80 "}, {"X-Forwarded-Proto", "HTTPS"}}, "[::1]:80", "https"},
      {{{"X-Forwarded-Proto", "http"}}, "here", "http"},
      {{{"X-Forwarded-Proto", "ftp"}}, "here", "http"},
      {{{"X-Forwarded-Proto", "https, http"}}, "here", "http"},
      {{{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Proto", "https"}}, "here", "http"},
      {{{"X-Forwarded-Host", "a"}, {"X-Forwarded-Host", "b"}}, "here", "http"},
      {{{"X-Forwarded-Host", "a, b"}}, "here", "http"},
      {{{"X-Forwarded-Host", "a/b"}}, "here", "http"},
      {{{"X-Forwarded-Host", "user@a"}}, "here", "http"},
      {{{"X-Forwarded-Host", "\"a\""}}, "here", "http"},
      {{{"X-Forwarded-Host", ""}}, "here", "http"},
      {{{"X-Forwarded-Host", std::string(262, 'a')}}, "here", "http"},
  };
  for (const Case& c : cases) {
    http::Headers headers = c.headers;
    headers.add("Host", "here");
    Forwarded from = forwarded(request_from("2001:db8::1", headers), kTrusted);
    EXPECT_EQ(from.host, c.host);
    EXPECT_EQ(from.protocol, c.protocol);
  }
}

}  // namespace
}  // namespace osb::server
