#pragma once

// Which requests count against server.limit_concurrency. Those that make room or only look never do: a server
// that refuses deletes while it is full stays full.

#include <string_view>

namespace osb::server {

enum class Load {
  light,   // looks, deletes, renews, pauses, resumes: never counted, never refused
  create,  // makes a sandbox
  other,
};
Load load_of(std::string_view method, std::string_view path);

}  // namespace osb::server
