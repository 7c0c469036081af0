#include "cli/text_encoding.h"

#include "base/strings.h"
#include "base/utf8.h"

namespace osb::cli {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

uint8_t at(std::string_view bytes, size_t i) { return i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0; }

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = uint32_t{at(bytes, i)} << 16 | uint32_t{at(bytes, i + 1)} << 8 | at(bytes, i + 2);
    for (int shift = 18; shift >= 0; shift -= 6) out += kDigits[group >> shift & 63];
  }
  if (size_t left = bytes.size() % 3; left != 0)
    out.replace(out.size() - (3 - left), 3 - left, 3 - left, '=');
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 255);
  }
  return out;
}

std::string from_latin1(std::string_view bytes) {
  std::string out;
  for (char byte : bytes) {
    auto c = static_cast<unsigned char>(byte);
    if (c >= 0x80) out += static_cast<char>(0xC0 | c >> 6);
    out += c < 0x80 ? byte : static_cast<char>(0x80 | (c & 0x3F));
  }
  return out;
}

std::optional<std::string> to_latin1(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t c = at(text, i);
    if (c < 0x80) {
      out += text[i];
    } else if ((c == 0xC2 || c == 0xC3) && i + 1 < text.size()) {
      out += static_cast<char>((c & 3) << 6 | (at(text, ++i) & 0x3F));
    } else {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace

std::optional<TextEncoding> find_encoding(std::string_view given) {
  std::string name = to_lower(given);
  if (name == "utf-8" || name == "utf8") return TextEncoding::utf8;
  if (name == "latin-1" || name == "latin1" || name == "iso-8859-1") return TextEncoding::latin1;
  if (name == "base64") return TextEncoding::base64;
  return std::nullopt;
}

Result<std::string> to_text(std::string bytes, TextEncoding encoding) {
  if (encoding == TextEncoding::base64) return to_base64(bytes);
  if (encoding == TextEncoding::latin1) return from_latin1(bytes);
  if (is_utf8(bytes)) return bytes;
  return fail(Code::invalid_argument, "the file is no UTF-8 text\n  remedy: read it with encoding base64");
}

Result<std::string> to_bytes(std::string text, TextEncoding encoding) {
  if (encoding == TextEncoding::utf8) return text;
  auto bytes = encoding == TextEncoding::base64 ? from_base64(text) : to_latin1(text);
  if (bytes) return std::move(*bytes);
  return fail(Code::invalid_argument, encoding == TextEncoding::base64
                                          ? "the content is no base64"
                                          : "the content has characters that latin-1 does not have");
}

}  // namespace osb::cli
