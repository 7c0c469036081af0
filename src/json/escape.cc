#include "json/escape.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace osb::json {
namespace {

using Byte = unsigned char;

constexpr uint64_t repeat(Byte b) { return 0x0101010101010101u * b; }

// The high bit of every byte that is below `limit` (at most 0x80), for bytes below 0x80. A borrow may also
// mark bytes after the first marked one, never before it.
constexpr uint64_t below(uint64_t word, Byte limit) { return (word - repeat(limit)) & ~word; }
constexpr uint64_t equal(uint64_t word, Byte b) { return below(word ^ repeat(b), 1); }

// A mark in each byte that may need attention; the lowest mark is exact, and no mark at all means eight plain
// bytes.
constexpr uint64_t special(uint64_t word) {
  uint64_t marks = word | below(word, 0x20) | equal(word, '\\');
  marks |= equal(word | repeat('"' ^ '&'), '&');  // '"' and '&' differ in one bit
  marks |= equal(word | repeat('<' ^ '>'), '>');  // so do '<' and '>'
  return marks & repeat(0x80);
}
static_assert(std::has_single_bit(unsigned('"' ^ '&')) && ('"' | ('"' ^ '&')) == '&');
static_assert(std::has_single_bit(unsigned('<' ^ '>')) && ('<' | ('<' ^ '>')) == '>');

bool is_plain(Byte c) {
  return c >= 0x20 && c < 0x80 && c != '"' && c != '\\' && c != '&' && c != '<' && c != '>';
}

// The first byte at or after `at` that is not plain.
const char* skip_plain(const char* at, const char* end) {
  if constexpr (std::endian::native == std::endian::little) {
    for (; end - at >= 8; at += 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      if (uint64_t marks = special(word)) return at + std::countr_zero(marks) / 8;
    }
  }
  while (at < end && is_plain(static_cast<Byte>(*at))) ++at;
  return at;
}

struct Rune {
  int bytes = 0;  // 0: no valid sequence starts here
  uint32_t point = 0;
};

// The sequence of two to four bytes at `at` (table 3-7 of the Unicode standard: no surrogates, nothing
// overlong).
Rune decode(const char* at, const char* end) {
  auto byte = [&](int i) -> uint32_t { return end - at > i ? static_cast<Byte>(at[i]) : 0; };
  auto continues = [&](int i) { return (byte(i) & 0xC0) == 0x80; };
  uint32_t a = byte(0);
  if (a >= 0xC2 && a <= 0xDF) {
    if (continues(1)) return {2, (a & 0x1F) << 6 | (byte(1) & 0x3F)};
  } else if (a >= 0xE0 && a <= 0xEF) {
    uint32_t point = (a & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    if (continues(1) && continues(2) && point >= 0x800 && !surrogate) return {3, point};
  } else if (a >= 0xF0 && a <= 0xF4) {
    uint32_t point = (a & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    if (continues(1) && continues(2) && continues(3) && point >= 0x10000 && point <= 0x10FFFF)
      return {4, point};
  }
  return {};
}

void append_escape(std::string& out, uint32_t unit) {
  static constexpr char kDigits[] = "0123456789abcdef";
  char text[6] = {'\\',
                  'u',
                  kDigits[unit >> 12 & 15],
                  kDigits[unit >> 8 & 15],
                  kDigits[unit >> 4 & 15],
                  kDigits[unit & 15]};
  out.append(text, 6);
}

void append_ascii(std::string& out, Byte c) {
  switch (c) {
    case '"':
      out.append("\\\"");
      return;
    case '\\':
      out.append("\\\\");
      return;
    case '\b':
      out.append("\\b");
      return;
    case '\f':
      out.append("\\f");
      return;
    case '\n':
      out.append("\\n");
      return;
    case '\r':
      out.append("\\r");
      return;
    case '\t':
      out.append("\\t");
      return;
    default:
      append_escape(out, c);
  }
}

}  // namespace

void append_string(std::string& out, std::string_view bytes) {
  out.reserve(out.size() + bytes.size() + 2);
  out.push_back('"');
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  const char* copied = at;  // everything before it is in `out`
  while ((at = skip_plain(at, end)) < end) {
    int length = 1;
    uint32_t point = static_cast<Byte>(*at);
    if (point >= 0x80) {
      Rune rune = decode(at, end);
      bool cuts_lines = rune.point == 0x85 || rune.point == 0x2028 || rune.point == 0x2029;
      if (rune.bytes > 0 && !cuts_lines) {  // stays as it is, part of the run that is copied later
        at += rune.bytes;
        continue;
      }
      if (rune.bytes > 0) length = rune.bytes;
      point = rune.bytes > 0 ? rune.point : 0xFFFD;
    }
    out.append(copied, at);
    if (point < 0x80) {
      append_ascii(out, static_cast<Byte>(point));
    } else {
      append_escape(out, point);
    }
    copied = at += length;
  }
  out.append(copied, end);
  out.push_back('"');
}

}  // namespace osb::json
