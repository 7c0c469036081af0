#pragma once

// /v1/isolated: further isolation inside the sandbox. Not available yet, and said so in the form that clients
// understand.

#include "http/router.h"

namespace osb::execd {

void add_isolated_routes(http::Router& router);

}  // namespace osb::execd
