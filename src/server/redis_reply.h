#pragma once

// The wire of Redis (RESP, version 2), as much of it as BRPOP needs: commands out, bounded replies in.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::server {

struct RedisReply {
  enum class Kind { status, error, number, text, nothing, list };
  Kind kind = Kind::nothing;
  std::string text = {};               // status, error, text
  int64_t number = 0;                  // number
  std::vector<RedisReply> items = {};  // list: never a list itself
};

struct ParsedReply {
  RedisReply reply;
  size_t size = 0;  // of its bytes
};

inline constexpr size_t kMaxReplyLine = 1024;
inline constexpr size_t kMaxReplyText = 65536;
inline constexpr size_t kMaxReplyItems = 8;
inline constexpr size_t kMaxReplyBytes = kMaxReplyItems * (kMaxReplyText + 64);

std::string encode_redis_command(std::initializer_list<std::string_view> words);
// The reply that the bytes begin with; nothing while there is more to come. Code::corrupt, Code::too_large.
Result<std::optional<ParsedReply>> parse_redis_reply(std::string_view bytes);

}  // namespace osb::server
