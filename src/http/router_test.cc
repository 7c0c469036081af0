#include "http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::http {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Handlers are told apart by the target type of the function object.
template <int N>
Task<> handler(Request&, ResponseWriter&) {
  co_return;
}
template <int N>
bool is(const Router::Match& match) {
  using Function = Task<> (*)(Request&, ResponseWriter&);
  return match.handler && match.handler->target<Function>() &&
         *match.handler->target<Function>() == &handler<N>;
}

Router sample() {
  Router router;
  router.add("GET", "/", handler<0>);
  router.add("GET", "/sandboxes", handler<1>);
  router.add("POST", "/sandboxes", handler<2>);
  router.add("GET", "/sandboxes/{id}", handler<3>);
  router.add("GET", "/sandboxes/special", handler<4>);
  router.add("GET", "/sandboxes/{id}/endpoints/{port}", handler<5>);
  router.add("*", "/sandboxes/{id}/proxy/{port}{rest...}", handler<6>);
  router.add("GET", "/files{rest...}", handler<7>);
  router.add("GET", "/sandboxes/{name}", handler<8>);
  return router;
}

TEST(Router, MatchesLiteralsAndParameters) {
  Router router = sample();
  EXPECT_TRUE(is<0>(router.find("GET", "/")));
  EXPECT_TRUE(is<1>(router.find("GET", "/sandboxes")));
  EXPECT_TRUE(is<2>(router.find("POST", "/sandboxes")));
  auto match = router.find("GET", "/sandboxes/a%20b/endpoints/80");
  EXPECT_TRUE(is<5>(match));
  EXPECT_THAT(match.params, ElementsAre(Pair("id", "a b"), Pair("port", "80")));
  EXPECT_EQ(match.rest, "");
}

TEST(Router, LiteralWinsAndEarlierWins) {
  Router router = sample();
  EXPECT_TRUE(is<4>(router.find("GET", "/sandboxes/special")));
  EXPECT_TRUE(is<3>(router.find("GET", "/sandboxes/other")));
}

TEST(Router, RestIsRawAndStartsWithASlash) {
  Router router = sample();
  auto match = router.find("DELETE", "/sandboxes/x/proxy/8080/a%2Fb//c/");
  EXPECT_TRUE(is<6>(match));
  EXPECT_EQ(match.rest, "/a%2Fb//c/");
  EXPECT_EQ(match.params.at("port"), "8080");
  EXPECT_EQ(router.find("GET", "/sandboxes/x/proxy/8080").rest, "");
  EXPECT_EQ(router.find("GET", "/sandboxes/x/proxy/8080/").rest, "/");
  EXPECT_TRUE(is<7>(router.find("GET", "/files/a/b")));
  EXPECT_EQ(router.find("GET", "/filesystem").handler, nullptr);
  std::string deep = "/sandboxes/x/proxy/1";
  for (int i = 0; i < 100; ++i) deep += "/d";
  EXPECT_TRUE(is<6>(router.find("GET", deep)));
}

TEST(Router, SaysWhichMethodsWouldDo) {
  Router router = sample();
  auto match = router.find("PUT", "/sandboxes");
  EXPECT_EQ(match.handler, nullptr);
  EXPECT_THAT(match.allowed, ElementsAre("GET", "POST"));
  EXPECT_THAT(router.find("PUT", "/sandboxes/special").allowed, ElementsAre("GET"));
  EXPECT_THAT(router.find("GET", "/sandboxes").allowed, IsEmpty());
}

TEST(Router, MatchesNothingElse) {
  Router router = sample();
  for (std::string_view path :
       {"/sandboxes/", "/Sandboxes", "/sandboxes//endpoints/80", "/sandboxes/x/endpoints", "/sandboxes/x/y",
        "/sandboxes/%zz", "/sandboxes/a%00b", "//", "/sandboxes/x/proxy", "/sandboxes/x/proxy/"}) {
    auto match = router.find("GET", path);
    EXPECT_EQ(match.handler, nullptr) << path;
    EXPECT_THAT(match.params, IsEmpty()) << path;
  }
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "/d";
  EXPECT_EQ(router.find("GET", deep).handler, nullptr);
}

TEST(Router, RestAloneTakesEverything) {
  Router router;
  router.add("GET", "{rest...}", handler<1>);
  router.add("GET", "/exact", handler<2>);
  EXPECT_EQ(router.find("GET", "/a/b").rest, "/a/b");
  EXPECT_EQ(router.find("GET", "/").rest, "/");
  EXPECT_TRUE(is<2>(router.find("GET", "/exact")));
  EXPECT_TRUE(is<1>(router.find("GET", "/exact/more")));
}

}  // namespace
}  // namespace osb::http
