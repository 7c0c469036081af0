#include "execd/byte_range.h"

#include <algorithm>

#include "base/strings.h"

namespace osb::execd {
namespace {

// Digits only; a number too large to represent is simply beyond every end.
std::optional<uint64_t> parse_position(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
  return parse_number<uint64_t>(text).value_or(UINT64_MAX);
}

Result<std::optional<ByteRange>> parse_one(std::string_view spec, uint64_t size) {
  auto malformed = [&] {
    return fail(Code::invalid_argument, "range '" + std::string(spec) + "' is malformed");
  };
  size_t dash = spec.find('-');
  if (dash == spec.npos) return malformed();
  std::string_view from = trim(spec.substr(0, dash)), to = trim(spec.substr(dash + 1));
  if (from.empty()) {
    auto count = parse_position(to);
    if (!count) return malformed();
    if (*count == 0 || size == 0) return std::nullopt;
    return ByteRange{size - std::min(*count, size), size - 1};
  }
  auto first = parse_position(from);
  if (!first) return malformed();
  if (to.empty()) {
    if (*first >= size) return std::nullopt;
    return ByteRange{*first, size - 1};
  }
  auto last = parse_position(to);
  if (!last || *last < *first) return malformed();
  if (*first >= size) return std::nullopt;
  return ByteRange{*first, std::min(*last, size - 1)};
}

}  // namespace

Result<std::optional<ByteRange>> parse_range(std::string_view header, uint64_t size) {
  std::string_view text = trim(header);
  if (!text.starts_with("bytes="))
    return fail(Code::invalid_argument, "the Range header must begin with 'bytes='");
  text.remove_prefix(6);
  std::optional<ByteRange> found;
  bool any = false;
  for (std::string_view spec : split(text, ',')) {
    spec = trim(spec);
    if (spec.empty()) continue;
    any = true;
    auto range = TRY(parse_one(spec, size));
    if (range && !found) found = range;
  }
  if (!any) return fail(Code::invalid_argument, "the Range header names no range");
  return found;
}

}  // namespace osb::execd
