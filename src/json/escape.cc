#include "json/escape.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/utf8.h"

namespace osb::json {
namespace {

using Byte = unsigned char;

constexpr uint64_t repeat(Byte b) { return 0x0101010101010101u * b; }

// The high bit of every byte that is below `limit` (at most 0x80), for bytes below 0x80. A borrow may also
// mark bytes after the first marked one, never before it.
constexpr uint64_t below(uint64_t word, Byte limit) { return (word - repeat(limit)) & ~word; }
constexpr uint64_t equal(uint64_t word, Byte b) { return below(word ^ repeat(b), 1); }

enum class Style { minimal, guarded };  // guarded: nothing in it cuts a line or starts a tag

// A mark in each byte that may need attention; the lowest mark is exact, and no mark at all means eight plain
// bytes.
template <Style style>
constexpr uint64_t special(uint64_t word) {
  uint64_t marks = word | below(word, 0x20) | equal(word, '\\');
  if constexpr (style == Style::guarded) {
    marks |= equal(word | repeat('"' ^ '&'), '&');  // '"' and '&' differ in one bit
    marks |= equal(word | repeat('<' ^ '>'), '>');  // so do '<' and '>'
  } else {
    marks |= equal(word, '"');
  }
  return marks & repeat(0x80);
}
static_assert(std::has_single_bit(unsigned('"' ^ '&')) && ('"' | ('"' ^ '&')) == '&');
static_assert(std::has_single_bit(unsigned('<' ^ '>')) && ('<' | ('<' ^ '>')) == '>');

template <Style style>
bool is_plain(Byte c) {
  bool markup = style == Style::guarded && (c == '&' || c == '<' || c == '>');
  return c >= 0x20 && c < 0x80 && c != '"' && c != '\\' && !markup;
}

// The first byte at or after `at` that is not plain.
template <Style style>
const char* skip_plain(const char* at, const char* end) {
  if (at < end && static_cast<Byte>(*at) >= 0x80)
    return at;  // after one letter of another script comes the next
  if constexpr (std::endian::native == std::endian::little) {
    for (; end - at >= 8; at += 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      if (uint64_t marks = special<style>(word)) return at + std::countr_zero(marks) / 8;
    }
  }
  while (at < end && is_plain<style>(static_cast<Byte>(*at))) ++at;
  return at;
}

// U+0085, U+2028 and U+2029, as which some clients' readers end a line; 0 for every other valid sequence.
uint32_t line_end(const Byte* p) {
  if (p[0] == 0xC2 && p[1] == 0x85) return 0x85;
  if (p[0] == 0xE2 && p[1] == 0x80 && (p[2] == 0xA8 || p[2] == 0xA9)) return 0x2000u | (p[2] & 0x3F);
  return 0;
}

void append_escaped(std::string& out, uint32_t unit) {
  switch (unit) {
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
      break;
  }
  auto digit = [&](int shift) { return "0123456789abcdef"[unit >> shift & 15]; };
  char text[] = {'\\', 'u', digit(12), digit(8), digit(4), digit(0)};
  out.append(text, sizeof text);
}

template <Style style>
void append(std::string& out, std::string_view bytes) {
  out.reserve(out.size() + bytes.size() + 2);
  out.push_back('"');
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  const char* copied = at;  // everything before it is in `out`
  while ((at = skip_plain<style>(at, end)) < end) {
    const Byte* here = reinterpret_cast<const Byte*>(at);
    size_t length = 1;
    uint32_t escaped = *here;
    if (*here >= 0x80) {
      length = utf8_sequence(here, static_cast<size_t>(end - at));
      escaped = length == 0 ? 0xFFFD : style == Style::guarded ? line_end(here) : 0;
      if (escaped == 0) {  // stays as it is, part of the run that is copied later
        at += length;
        continue;
      }
      length = std::max<size_t>(length, 1);
    }
    out.append(copied, at);
    append_escaped(out, escaped);
    copied = at += length;
  }
  out.append(copied, end);
  out.push_back('"');
}

}  // namespace

void append_string(std::string& out, std::string_view bytes) { append<Style::guarded>(out, bytes); }

void append_minimal_string(std::string& out, std::string_view bytes) { append<Style::minimal>(out, bytes); }

}  // namespace osb::json
