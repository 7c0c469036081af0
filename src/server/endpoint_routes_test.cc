// Where the ports of a sandbox are reached: the forms of an endpoint and what is wrong with a request for
// one.

#include <gmock/gmock.h>

#include "server/test_server.h"

namespace osb::server {
namespace {

TEST(EndpointRoute, Addresses) {
  TestServer server;
  std::string id = server.create();
  std::string proxy = "/sandboxes/" + id + "/proxy/";
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/" + id + "/endpoints/44772").text("endpoint"),
            server.host() + "/v1" + proxy + "44772");
  EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/endpoints/18080").text("endpoint"),
            server.host() + proxy + "18080");
  EXPECT_EQ(server
                .call("GET", "/sandboxes/" + id + "/endpoints/80?use_server_proxy=true", "",
                      {{"Host", "localhost:1"}})
                .text("endpoint"),
            "localhost:1" + proxy + "80");
  EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/endpoints/65535").status, 200);
  for (const char* port : {"0", "65536", "-1", "99999999999999999999"}) {
    Reply reply = server.call("GET", "/sandboxes/" + id + "/endpoints/" + port);
    EXPECT_EQ(reply.status, 400) << port;
    EXPECT_EQ(reply.code(), "SANDBOX::INVALID_PORT") << port;
  }
  for (const char* tail :
       {"abc", "8080x", "80%20", "80?use_server_proxy=maybe", "80?expires=", "80?expires=soon"}) {
    EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/endpoints/" + tail).status, 422) << tail;
  }
  Reply both = server.call("GET", "/sandboxes/" + id + "/endpoints/80?use_server_proxy=true&expires=5");
  EXPECT_EQ(both.code(), "SANDBOX::INVALID_PARAMETER");
  for (const char* expires : {"5", "-5", "0", "-99999999999999"}) {
    Reply past = server.call("GET", "/sandboxes/" + id + "/endpoints/80?expires=" + expires);
    EXPECT_EQ(past.status, 400) << expires;
    EXPECT_EQ(past.code(), "SANDBOX::INVALID_PARAMETER") << expires;
  }
  EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/endpoints/80?expires=18446744073709551615").status,
            200);
  EXPECT_EQ(server.call("GET", "/sandboxes/" + id + "/endpoints/80?expires=18446744073709551616").status,
            422);
  Reply missing = server.call("GET", "/v1/sandboxes/nope/endpoints/80?use_server_proxy=true", "",
                              {{"X-Request-ID", "mine"}});
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.headers.get("X-Request-ID"), "mine");
}

TEST(EndpointRoute, BehindAPublicName) {
  TestServer server("[server]\neip = \"https://gw.example.com/base/\"");
  std::string id = server.create();
  EXPECT_EQ(server.call("GET", "/v1/sandboxes/" + id + "/endpoints/80").text("endpoint"),
            "gw.example.com/base/sandboxes/" + id + "/proxy/80");
}

}  // namespace
}  // namespace osb::server
