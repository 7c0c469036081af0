// A path that is authorised by its token or without one means the same sandbox and port to the router, which
// decides where it goes; and what is written to logs has no token.
#include "check.h"
#include "http/router.h"
#include "server/endpoint_token.h"

using namespace osb;

namespace {

http::Router make_router() {
  http::Router router;
  for (std::string prefix : {"/v1/t/{token}", "/t/{token}", "/v1", ""}) {
    router.add("*", prefix + "/sandboxes/{id}/proxy/{port}{rest...}",
               [](http::Request&, http::ResponseWriter&) -> io::Task<> { co_return; });
  }
  return router;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  static const http::Router router = make_router();
  std::string target = "/" + std::string(fuzz::text_of(data, size));
  http::RequestHead head{"GET", target};
  std::string_view path = head.path();
  auto found = server::parse_proxy_path(path);
  if (!found) return 0;
  auto match = router.find("GET", path);
  CHECK(match.handler);
  CHECK(match.params["id"] == found->id);
  CHECK(match.params["port"] == found->port);
  CHECK(match.params["token"] == found->token);
  CHECK(match.rest.empty() || match.rest.starts_with('/'));
  std::string logged = server::without_token(path);
  auto shown = server::parse_proxy_path(logged);
  CHECK(shown && shown->token == (found->token.empty() ? "" : "-"));
  return 0;
}
