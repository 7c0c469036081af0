// Output of a command: the same texts in whatever pieces it is read, none too long, none with a line end
// inside, and joined as clients join them they are the output again. The first byte is the size of the
// pieces.
#include "execd/line_splitter.h"

#include <vector>

#include "check.h"

using osb::execd::LineSplitter;

namespace {

std::vector<std::string> split(std::string_view bytes, size_t step, LineSplitter::CarriageReturn cr) {
  std::vector<std::string> texts;
  auto emit = [&](std::string_view text) { texts.emplace_back(text); };
  LineSplitter lines(cr);
  for (size_t at = 0; at < bytes.size(); at += step) lines.feed(bytes.substr(at, step), emit);
  lines.flush(emit);
  return texts;
}

// A line feed between two texts where neither side brings one.
std::string join(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) {
    if (!out.empty() && out.back() != '\n' && text.front() != '\n') out += '\n';
    out += text;
  }
  return out;
}

std::string_view without_final_ends(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = osb::fuzz::text_of(data, size);
  if (size < 1) return 0;
  size_t step = 1 + static_cast<unsigned char>(text[0]);
  text.remove_prefix(1);
  for (auto cr : {LineSplitter::CarriageReturn::ends_line, LineSplitter::CarriageReturn::is_text}) {
    auto whole = split(text, text.size() + 1, cr);
    CHECK(split(text, step, cr) == whole);
    CHECK(split(text, 1, cr) == whole);
    for (const std::string& line : whole) {
      CHECK(!line.empty() && line.size() <= LineSplitter::kMaxText);
      bool blank = line == "\n" || line == "\n\n";
      CHECK(blank || line.find('\n') == line.npos);
      CHECK(cr == LineSplitter::CarriageReturn::is_text || line.find('\r') == line.npos);
    }
    if (text.find('\r') == text.npos) CHECK(without_final_ends(join(whole)) == without_final_ends(text));
  }
  return 0;
}
