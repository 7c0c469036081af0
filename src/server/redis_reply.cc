#include "server/redis_reply.h"

#include "base/strings.h"

namespace osb::server {
namespace {

using Kind = RedisReply::Kind;
constexpr std::string_view kEnd = "\r\n";

// Takes replies off the front of `rest`. Nothing: it ends in the middle of one.
template <class T>
using Piece = Result<std::optional<T>>;

Piece<std::string_view> take_line(std::string_view& rest) {
  size_t end = rest.find(kEnd);
  if (end == rest.npos && rest.size() <= kMaxReplyLine + 1) return std::nullopt;  // perhaps half of its end
  if (end == rest.npos || end > kMaxReplyLine) return fail(Code::too_large, "a line of a reply is too long");
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + kEnd.size());
  return line;
}

Piece<RedisReply> take_text(std::string_view& rest, int64_t size) {
  if (size == -1) return RedisReply{};
  if (size < 0) return fail(Code::corrupt, "a reply has a negative length");
  if (static_cast<uint64_t>(size) > kMaxReplyText) return fail(Code::too_large, "a reply is too long");
  auto length = static_cast<size_t>(size);
  if (rest.size() < length + kEnd.size()) return std::nullopt;
  if (rest.substr(length, kEnd.size()) != kEnd)
    return fail(Code::corrupt, "a reply does not end where it says");
  RedisReply reply{.kind = Kind::text, .text = std::string(rest.substr(0, length))};
  rest.remove_prefix(length + kEnd.size());
  return reply;
}

enum class Lists { allowed, refused };

Piece<RedisReply> take_reply(std::string_view& rest, Lists lists);

Piece<RedisReply> take_items(std::string_view& rest, int64_t count) {
  if (count == -1) return RedisReply{};
  if (count < 0 || static_cast<uint64_t>(count) > kMaxReplyItems)
    return fail(Code::too_large, "a reply has too many items");
  RedisReply list{.kind = Kind::list};
  while (count-- > 0) {
    auto item = TRY(take_reply(rest, Lists::refused));
    if (!item) return std::nullopt;
    list.items.push_back(std::move(*item));
  }
  return list;
}

Piece<RedisReply> take_reply(std::string_view& rest, Lists lists) {
  auto line = TRY(take_line(rest));
  if (!line) return std::nullopt;
  if (line->empty()) return fail(Code::corrupt, "an empty reply");
  char type = line->front();
  std::string_view body = line->substr(1);
  if (type == '+') return RedisReply{.kind = Kind::status, .text = std::string(body)};
  if (type == '-') return RedisReply{.kind = Kind::error, .text = std::string(body)};
  auto number = parse_number<int64_t>(body);
  if (!number) return fail(Code::corrupt, "a reply without a number");
  if (type == ':') return RedisReply{.kind = Kind::number, .number = *number};
  if (type == '$') return take_text(rest, *number);
  if (type == '*' && lists == Lists::allowed) return take_items(rest, *number);
  return fail(Code::corrupt, "a reply of an unknown type");
}

}  // namespace

std::string encode_redis_command(std::initializer_list<std::string_view> words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (std::string_view word : words) {
    out.append("$").append(std::to_string(word.size())).append(kEnd);
    out.append(word).append(kEnd);
  }
  return out;
}

Result<std::optional<ParsedReply>> parse_redis_reply(std::string_view bytes) {
  std::string_view rest = bytes;
  auto reply = TRY(take_reply(rest, Lists::allowed));
  if (!reply) return std::nullopt;
  return ParsedReply{.reply = std::move(*reply), .size = bytes.size() - rest.size()};
}

}  // namespace osb::server
