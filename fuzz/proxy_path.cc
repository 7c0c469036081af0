// A path that is authorised by its token, its signature or without one means the same sandbox and port to the
// router, which decides where it goes; what is written to logs has no token; and a host name that is read as
// a preview is the one that would be written.
#include "check.h"
#include "http/router.h"
#include "server/endpoint_token.h"
#include "server/preview_host.h"

using namespace osb;

namespace {

http::Router make_router() {
  http::Router router;
  for (std::string prefix : {"/v1/t/{token}", "/t/{token}", "/v1/s/{expires}/{signature}",
                             "/s/{expires}/{signature}", "/v1", ""}) {
    router.add("*", prefix + "/sandboxes/{id}/proxy/{port}{rest...}",
               [](http::Request&, http::ResponseWriter&) -> io::Task<> { co_return; });
  }
  return router;
}

void read_host(std::string_view host) {
  static const server::EndpointTokens tokens(std::string(server::kSecretBytes, 's'));
  static const server::PreviewHosts previews(tokens, "localhost");
  auto preview = previews.read(host);
  CHECK(!preview || previews.is_preview(host));
  CHECK(!preview || previews.name(preview->id, preview->port)->size() <= host.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  static const http::Router router = make_router();
  read_host(fuzz::text_of(data, size));
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
  CHECK(match.params["expires"] == found->expires);
  CHECK(match.params["signature"] == found->signature);
  CHECK(match.rest.empty() || match.rest.starts_with('/'));
  std::string logged = server::without_token(path);
  auto shown = server::parse_proxy_path(logged);
  CHECK(shown && shown->token == (found->token.empty() ? "" : "-"));
  CHECK(shown->signature == (found->signature.empty() ? "" : "-"));
  return 0;
}
