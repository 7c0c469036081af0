#include "base/ids.h"

#include <algorithm>

#include <sys/random.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "base/clock.h"

namespace osb {
namespace {

using Bytes = std::array<uint8_t, 16>;

Bytes random_bytes() {
  Bytes b;
  // 16 bytes after boot never fail and never come short; anything else is a broken machine.
  if (::getrandom(b.data(), b.size(), 0) != static_cast<ssize_t>(b.size())) std::abort();
  return b;
}

std::string hex(const Bytes& bytes, bool hyphens) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (hyphens && (i == 4 || i == 6 || i == 8 || i == 10)) out.push_back('-');
    out.push_back(kDigits[bytes[i] >> 4]);
    out.push_back(kDigits[bytes[i] & 15]);
  }
  return out;
}

void stamp(Bytes& b, uint8_t version) {
  b[6] = static_cast<uint8_t>((b[6] & 0x0f) | (version << 4));
  b[8] = static_cast<uint8_t>((b[8] & 0x3f) | 0x80);
}

}  // namespace

std::string new_uuid7() {
  Bytes b = random_bytes();
  uint64_t ms = static_cast<uint64_t>(epoch_ms());
  for (int i = 0; i < 6; ++i) b[static_cast<size_t>(i)] = static_cast<uint8_t>(ms >> (40 - 8 * i));
  stamp(b, 7);
  return hex(b, true);
}

std::string new_uuid4() {
  Bytes b = random_bytes();
  stamp(b, 4);
  return hex(b, true);
}

std::string new_hex_id() {
  Bytes b = random_bytes();
  stamp(b, 4);
  return hex(b, false);
}

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
}

bool is_sandbox_id(std::string_view text) {
  constexpr size_t kLongest = 128;
  auto is_word = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && text.size() <= kLongest && is_word(static_cast<unsigned char>(text[0])) &&
         std::ranges::all_of(text,
                             [&](unsigned char c) { return is_word(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace osb
