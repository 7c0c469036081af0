#include "interpreter/output_text.h"

namespace osb::interpreter {

size_t OutputText::piece(size_t end) const {
  if (end <= kMaxText) return end;
  // At a line end if there is one, else between code points.
  size_t line = held_.rfind('\n', kMaxText - 1);
  if (line != held_.npos) return line + 1;
  return whole_code_points(std::string_view(held_).substr(0, kMaxText));
}

size_t OutputText::whole_code_points(std::string_view text) {
  // The last code point begins at most three bytes before the end; bytes that are no UTF-8 are not waited
  // for.
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    auto c = static_cast<unsigned char>(text[text.size() - back]);
    if ((c & 0xC0) == 0x80) continue;
    size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace osb::interpreter
