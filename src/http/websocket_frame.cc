#include "http/websocket_frame.h"

#include "base/utf8.h"

namespace osb::http {
namespace {

std::unexpected<Error> broken(std::string what) {
  return fail(Code::corrupt, "websocket: " + std::move(what));
}

uint64_t big_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

bool is_known(uint8_t opcode) { return opcode <= 2 || (opcode >= 8 && opcode <= 10); }

}  // namespace

Result<std::optional<FrameHead>> parse_frame_head(std::string_view bytes, Role us) {
  if (bytes.size() < 2) return std::nullopt;
  auto first = static_cast<uint8_t>(bytes[0]), second = static_cast<uint8_t>(bytes[1]);
  if (first & 0x70) return broken("a reserved bit is set, but no extension was agreed on");
  if (!is_known(first & 0x0f)) return broken("unknown opcode");
  FrameHead head{.final = (first & 0x80) != 0, .opcode = static_cast<Opcode>(first & 0x0f), .mask = {}};
  bool masked = (second & 0x80) != 0;
  if (masked != (us == Role::server)) {
    return broken(masked ? "a server must not mask its frames" : "a client must mask its frames");
  }
  uint8_t short_length = second & 0x7f;
  bool control = (first & 0x08) != 0;
  if (control && (!head.final || short_length > 125))
    return broken("a control frame is fragmented or too long");
  size_t extended = short_length == 126 ? 2 : short_length == 127 ? 8 : 0;
  head.size = 2 + extended + (masked ? 4 : 0);
  if (bytes.size() < head.size) return std::nullopt;
  head.length = extended ? big_endian(bytes.substr(2, extended)) : short_length;
  if (extended == 2 && head.length < 126) return broken("a length is not in its shortest form");
  if (extended == 8 && (head.length < 65536 || head.length >> 63))
    return broken("a length is not in its shortest form");
  if (masked) {
    std::array<uint8_t, 4> mask;
    for (size_t i = 0; i < 4; ++i) mask[i] = static_cast<uint8_t>(bytes[2 + extended + i]);
    head.mask = mask;
  }
  return head;
}

void append_frame_head(std::string& out, const FrameHead& head) {
  uint8_t mask_bit = head.mask ? 0x80 : 0;
  auto put = [&](uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
      out.push_back(static_cast<char>(value >> shift));
  };
  put((head.final ? 0x80u : 0u) | static_cast<uint8_t>(head.opcode), 1);
  if (head.length < 126) {
    put(mask_bit | head.length, 1);
  } else if (head.length < 65536) {
    put(mask_bit | 126u, 1);
    put(head.length, 2);
  } else {
    put(mask_bit | 127u, 1);
    put(head.length, 8);
  }
  if (head.mask) out.append(reinterpret_cast<const char*>(head.mask->data()), 4);
}

void apply_mask(std::span<char> bytes, const std::array<uint8_t, 4>& mask, size_t offset) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(bytes[i] ^ mask[(i + offset) & 3]);
}

bool may_be_sent(uint16_t code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

Result<CloseReason> parse_close(std::string_view payload) {
  CloseReason reason;
  if (payload.empty()) return reason;
  if (payload.size() < 2) return broken("a close frame with half a code");
  reason.code = static_cast<uint16_t>(big_endian(payload.substr(0, 2)));
  reason.text = payload.substr(2);
  if (!may_be_sent(reason.code)) return broken("a close code that must not be sent");
  if (!is_utf8(reason.text)) return broken("a close reason that is not UTF-8");
  return reason;
}

}  // namespace osb::http
