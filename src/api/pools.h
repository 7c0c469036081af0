#pragma once

// Pools on the wire: the bodies that make and change one, and what is printed of it.

#include <string>
#include <string_view>

#include "api/create_request.h"
#include "api/error.h"
#include "sandbox/pool.h"

namespace osb::api {

// Far beyond what one host has room for.
inline constexpr int64_t kMostPooled = 10'000;
inline constexpr size_t kMaxTemplate = 64 * 1024;

struct PoolBody {
  std::string name;
  std::string text;  // the template, as JSON
  CreateBody shape;  // and decoded
  sandbox::PoolCapacity capacity;
};
ApiResult<PoolBody> decode_pool(std::string_view content_type, std::string_view body);
ApiResult<sandbox::PoolCapacity> decode_pool_capacity(std::string_view content_type, std::string_view body);
// The template of a pool that was made before.
ApiResult<CreateBody> decode_stored_template(std::string_view text);

// The template is not shown: it is the owner's, and may be long.
void append_pool(std::string& out, const sandbox::PoolView& view);

}  // namespace osb::api
