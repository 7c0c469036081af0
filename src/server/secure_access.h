#pragma once

// Sandboxes that were made with secureAccess: whoever comes to their ports shows an access token besides, in
// a header that the answer of the endpoint route names, or comes by a signed endpoint.

#include <string_view>

#include "server/service.h"

namespace osb::server {

inline constexpr std::string_view kSecureAccessHeader = "OpenSandbox-Secure-Access";

bool is_secured(const sandbox::Sandbox& sandbox);

// 401 unless the request may come to this sandbox. A header that is there has to be right: a wrong one is not
// made good by a signature.
api::ApiResult<> check_secure_access(const Service& service, const http::Request& request,
                                     const sandbox::Sandbox& sandbox);

}  // namespace osb::server
