#include "server/request_load.h"

#include <algorithm>
#include <array>

namespace osb::server {

Load load_of(std::string_view method, std::string_view path) {
  constexpr std::array<std::string_view, 4> kLightMethods = {"GET", "HEAD", "DELETE", "OPTIONS"};
  constexpr std::array<std::string_view, 4> kLightActions = {"/renew-expiration", "/pause", "/resume",
                                                             "/stop"};
  if (std::ranges::find(kLightMethods, method) != kLightMethods.end()) return Load::light;
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  if (method == "POST" && path == "/sandboxes") return Load::create;
  bool light = path.starts_with("/sandboxes/") &&
               std::ranges::any_of(kLightActions, [&](auto action) { return path.ends_with(action); });
  return light ? Load::light : Load::other;
}

}  // namespace osb::server
