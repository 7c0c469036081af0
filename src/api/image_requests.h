#pragma once

// POST /images/pull and /images/push: which image, and who asks for it.

#include <optional>
#include <string>
#include <string_view>

#include "api/error.h"
#include "sandbox/create_request.h"

namespace osb::api {

struct PullBody {
  std::string image;
  std::optional<sandbox::ImageAuth> auth = {};
};
ApiResult<PullBody> decode_pull(std::string_view content_type, std::string_view body);

struct PushBody {
  std::string image;
  std::string target = {};  // "" is the image's own name
  std::optional<sandbox::ImageAuth> auth = {};
};
ApiResult<PushBody> decode_push(std::string_view content_type, std::string_view body);

}  // namespace osb::api
