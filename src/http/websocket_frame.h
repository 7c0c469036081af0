#pragma once

// WebSocket frames (RFC 6455, section 5) without any input or output. Strict: no extensions, minimal lengths,
// known opcodes, masks exactly where they belong.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::http {

enum class Opcode : uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

struct FrameHead {
  bool final = true;
  Opcode opcode = Opcode::binary;
  std::optional<std::array<uint8_t, 4>> mask;
  uint64_t length = 0;
  size_t size = 0;  // bytes of the head itself
};

enum class Role { server, client };  // which side we are: a client masks what it sends, a server does not

// Nothing when more bytes are needed; Code::corrupt for what the protocol forbids.
Result<std::optional<FrameHead>> parse_frame_head(std::string_view bytes, Role us);
void append_frame_head(std::string& out, const FrameHead& head);
void apply_mask(std::span<char> bytes, const std::array<uint8_t, 4>& mask, size_t offset = 0);

struct CloseReason {
  uint16_t code = 1005;  // 1005: the frame had none; 1006: there was no frame
  std::string text;
};
Result<CloseReason> parse_close(std::string_view payload);
bool may_be_sent(uint16_t close_code);

// The Sec-WebSocket-Accept that answers a Sec-WebSocket-Key.
std::string websocket_accept(std::string_view key);
// 16 bytes as base64, which is what a key has to be.
bool is_websocket_key(std::string_view key);
std::string new_websocket_key();

}  // namespace osb::http
