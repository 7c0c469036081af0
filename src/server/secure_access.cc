#include "server/secure_access.h"

#include "api/error_catalogue.h"
#include "base/strings.h"
#include "sandbox/create_request.h"

namespace osb::server {

bool is_secured(const sandbox::Sandbox& sandbox) {
  return sandbox.extensions.contains(sandbox::kSecuredExtension);
}

api::ApiResult<> check_secure_access(const Service& service, const http::Request& request,
                                     const sandbox::Sandbox& sandbox) {
  if (!is_secured(sandbox)) return {};
  if (const std::string* given = request.head.headers.find(kSecureAccessHeader)) {
    if (constant_time_equals(trim(*given), service.tokens.access_token(sandbox.id))) return {};
    return api::refuse(api::secure_access_needed());
  }
  auto path = parse_proxy_path(request.head.path());
  if (path && path->id == sandbox.id && service.tokens.check(*path, service.clock.now()) == Signature::valid)
    return {};
  return api::refuse(api::secure_access_needed());
}

}  // namespace osb::server
