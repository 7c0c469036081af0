#include "execd/isolated_routes.h"

#include "execd/reply.h"

namespace osb::execd {
namespace {

constexpr std::string_view kWhy =
    "this sandbox does not offer isolated sessions; every sandbox is isolated as a whole";

io::Task<> capabilities(http::Request&, http::ResponseWriter& response) {
  co_await reply_json(response, "{\"available\":false,\"message\":\"" + std::string(kWhy) +
                                    "\",\"setpriv_available\":false,\"userns_available\":false,"
                                    "\"commit_supported\":false,\"diff_supported\":false}");
}

io::Task<> refuse(http::Request&, http::ResponseWriter& response) {
  co_await reply_error(response, {503, codes::kUnavailable, std::string(kWhy)});
}

}  // namespace

void add_isolated_routes(http::Router& router) {
  router.add("GET", "/v1/isolated/capabilities", capabilities);
  router.add("*", "/v1/isolated{rest...}", refuse);
}

}  // namespace osb::execd
