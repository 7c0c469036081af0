#include "server/page_headers.h"

#include <gmock/gmock.h>

namespace osb::server {
namespace {

TEST(PageHeaders, WhatCountsForTheWholeOriginGoes) {
  http::Headers headers{{"service-worker-allowed", "/"},
                        {"Content-Type", "text/html"},
                        {"Clear-Site-Data", "\"*\""},
                        {"Strict-Transport-Security", "max-age=1"},
                        {"Alt-Svc", "h2=\":1\""},
                        {"NEL", "{}"},
                        {"Report-To", "{}"},
                        {"Access-Control-Allow-Origin", "*"},
                        {"Accept-CH", "UA"},
                        {"Content-Security-Policy", "default-src *"}};
  confine_proxied_answer(headers, "/p");
  std::vector<std::string> left;
  for (const auto& [name, value] : headers) left.push_back(name);
  EXPECT_THAT(left,
              testing::ElementsAre("Content-Type", "Access-Control-Allow-Origin", "Content-Security-Policy"));
}

TEST(PageHeaders, CookiesAreForTheSandboxsOwnPaths) {
  const std::pair<const char*, const char*> cookies[] = {
      {"a=1", "a=1; Path=/p/8000/"},
      {"a=1; Path=/", "a=1; Path=/p/8000/"},
      {"a=1;path = /x ;Secure; HttpOnly", "a=1;Secure; HttpOnly; Path=/p/8000/"},
      {"a=1; Domain=localhost; Max-Age=5", "a=1; Max-Age=5; Path=/p/8000/"},
      {"path=/; PATH=/y", "path=/; Path=/p/8000/"},
      {"", "; Path=/p/8000/"},
  };
  for (auto [before, after] : cookies) {
    http::Headers headers{{"Set-Cookie", before}, {"set-cookie", "b=2"}};
    confine_proxied_answer(headers, "/p/8000");
    EXPECT_EQ(headers.get("Set-Cookie"), after);
    EXPECT_EQ(headers.size(), 2u);
  }
}

}  // namespace
}  // namespace osb::server
