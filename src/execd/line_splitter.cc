#include "execd/line_splitter.h"

#include <cstring>

namespace osb::execd {

size_t LineSplitter::find_line_end(std::string_view bytes) {
  const void* lf = std::memchr(bytes.data(), '\n', bytes.size());
  size_t until = lf ? static_cast<size_t>(static_cast<const char*>(lf) - bytes.data()) : bytes.size();
  const void* cr = std::memchr(bytes.data(), '\r', until);
  if (cr) return static_cast<size_t>(static_cast<const char*>(cr) - bytes.data());
  return lf ? until : bytes.npos;
}

void LineSplitter::drop_final_cr(std::string_view& tail) {
  if (!tail.empty()) {
    if (tail.back() == '\r') tail.remove_suffix(1);
  } else if (!partial_.empty() && partial_.back() == '\r') {
    partial_.pop_back();
  }
}

size_t LineSplitter::cut_point(std::string_view text) {
  if (text.size() <= kMaxText) return text.size();
  // At most three continuation bytes belong to the code point that the limit falls into. More of them are no
  // UTF-8 and may be cut anywhere.
  size_t n = kMaxText;
  for (int back = 0; back < 3 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80; ++back) --n;
  return (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80 ? kMaxText : n;
}

}  // namespace osb::execd
