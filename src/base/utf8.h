#pragma once

// Which bytes are UTF-8: table 3-7 of the Unicode standard (no surrogates, nothing overlong, nothing beyond
// U+10FFFF).

#include <cstddef>
#include <string_view>

namespace osb {

// The length of the sequence of two to four bytes that starts at `p`, of which `left` bytes are there; 0 when
// it is not valid. The first byte is not ASCII.
inline size_t utf8_sequence(const unsigned char* p, size_t left) {
  auto continues = [&](int i) { return (p[i] & 0xC0) == 0x80; };
  if (p[0] < 0xE0) return p[0] >= 0xC2 && left >= 2 && continues(1) ? 2 : 0;
  if (p[0] < 0xF0) {
    if (left < 3 || !continues(1) || !continues(2)) return 0;
    bool overlong = p[0] == 0xE0 && p[1] < 0xA0;
    bool surrogate = p[0] == 0xED && p[1] >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (p[0] > 0xF4 || left < 4 || !continues(1) || !continues(2) || !continues(3)) return 0;
  bool overlong = p[0] == 0xF0 && p[1] < 0x90;
  bool beyond = p[0] == 0xF4 && p[1] >= 0x90;
  return overlong || beyond ? 0 : 4;
}

inline bool is_utf8(std::string_view bytes) {
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  for (size_t i = 0, length = 0; i < bytes.size(); i += length) {
    length = p[i] < 0x80 ? 1 : utf8_sequence(p + i, bytes.size() - i);
    if (length == 0) return false;
  }
  return true;
}

}  // namespace osb
