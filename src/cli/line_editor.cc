#include "cli/line_editor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace osb::cli {
namespace {

constexpr size_t kMaxEscape = 16;

constexpr char key(char letter) { return static_cast<char>(letter - '@'); }  // with Ctrl

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

size_t size_of_rune(char first) {
  auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
}

// Chinese, Japanese and Korean characters, wide forms, pictures.
bool is_wide(uint32_t rune) {
  constexpr std::pair<uint32_t, uint32_t> kWide[] = {
      {0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f},
      {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
  return std::ranges::any_of(kWide, [&](auto range) { return rune >= range.first && rune <= range.second; });
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

size_t width_of(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size();) {
    size_t size = std::min(size_of_rune(text[i]), text.size() - i);
    auto first = static_cast<unsigned char>(text[i]);
    uint32_t rune = size == 1 ? first : first & (0xffU >> (size + 1));
    for (size_t k = 1; k < size; ++k) rune = rune << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    width += is_wide(rune) ? 2 : 1;
    i += size;
  }
  return width;
}

std::string LineEditor::begin(std::string prompt, size_t columns) {
  prompt_ = std::move(prompt);
  columns_ = columns;
  text_.clear();
  typed_.clear();
  escape_.clear();
  rune_.clear();
  at_ = row_ = 0;
  width_ = width_of(prompt_);
  entry_ = history_.size();
  return prompt_;
}

size_t LineEditor::before(size_t at) const {
  if (at > 0) --at;
  while (at > 0 && continues(text_[at])) --at;
  return at;
}

size_t LineEditor::behind(size_t at) const {
  if (at < text_.size()) ++at;
  while (at < text_.size() && continues(text_[at])) ++at;
  return at;
}

size_t LineEditor::word_before(size_t at) const {
  while (at > 0 && !is_word(text_[at - 1])) --at;
  while (at > 0 && is_word(text_[at - 1])) --at;
  return at;
}

size_t LineEditor::word_behind(size_t at) const {
  while (at < text_.size() && !is_word(text_[at])) ++at;
  while (at < text_.size() && is_word(text_[at])) ++at;
  return at;
}

void LineEditor::erase(size_t from, size_t to) {
  text_.erase(from, to - from);
  at_ = from;
}

// All of it again: up to the prompt's row, everything below cleared, then the cursor to its place.
std::string LineEditor::refresh() {
  std::string out = row_ > 0 ? fmt::format("\x1b[{}A", row_) : "";
  out += "\r\x1b[J" + prompt_ + text_;
  size_t start = width_of(prompt_), end = start + width_of(text_), cursor = start + width_of(before_cursor());
  size_t columns = columns_ > 0 ? columns_ : end + 1;
  // A terminal goes to the next row with the next character, not with the last of a row.
  if (end > 0 && end % columns == 0) out += "\n\r";
  row_ = cursor / columns;
  width_ = end;
  if (size_t up = end / columns - row_; up > 0) out += fmt::format("\x1b[{}A", up);
  out += "\r";
  if (size_t right = cursor % columns; right > 0) out += fmt::format("\x1b[{}C", right);
  return out;
}

LineEditor::Step LineEditor::changed() { return {.shown = refresh()}; }

std::string LineEditor::insert(std::string_view text) {
  if (text_.size() + text.size() > kMaxLine) return "";
  bool at_end = at_ == text_.size();
  text_.insert(at_, text);
  at_ += text.size();
  if (!at_end) return refresh();
  // What is typed at the end is all that changes, and the terminal goes to the next row by itself; only a row
  // that is just full is shown anew.
  width_ += width_of(text);
  if (columns_ > 0 && width_ % columns_ == 0) return refresh();
  if (columns_ > 0) row_ = width_ / columns_;
  return std::string(text);
}

std::string LineEditor::list(const std::vector<std::string>& words) {
  std::string out = "\r\n";
  for (const std::string& word : words) out += word + "  ";
  row_ = 0;
  return out + "\r\n" + refresh();
}

LineEditor::Step LineEditor::recall(size_t entry) {
  if (entry_ == history_.size()) typed_ = text_;
  entry_ = entry;
  text_ = entry_ == history_.size() ? typed_ : history_[entry_];
  at_ = text_.size();
  return changed();
}

void LineEditor::remember(std::string line) {
  if (line.find_first_not_of(" \t") == line.npos) return;
  if (!history_.empty() && history_.back() == line) return;
  history_.push_back(std::move(line));
  if (history_.size() > kMaxHistory) history_.erase(history_.begin());
}

LineEditor::Step LineEditor::on_control(char pressed) {
  switch (pressed) {
    case key('A'):
      at_ = 0;
      return changed();
    case key('B'):
      at_ = before(at_);
      return changed();
    case key('D'):
      if (text_.empty()) return {.what = Step::What::end};
      erase(at_, behind(at_));
      return changed();
    case key('E'):
      at_ = text_.size();
      return changed();
    case key('F'):
      at_ = behind(at_);
      return changed();
    case key('H'):
    case 127: {
      size_t to = at_;
      erase(before(at_), to);
      return changed();
    }
    case key('I'):
      return {.what = Step::What::complete};
    case key('K'):
      erase(at_, text_.size());
      return changed();
    case key('L'):
      row_ = 0;
      return {.shown = "\x1b[H\x1b[2J" + refresh()};
    case key('N'):
      return entry_ < history_.size() ? recall(entry_ + 1) : Step{};
    case key('P'):
      return entry_ > 0 ? recall(entry_ - 1) : Step{};
    case key('U'): {
      size_t to = at_;
      erase(0, to);
      return changed();
    }
    case key('W'): {
      size_t to = at_;
      erase(word_before(at_), to);
      return changed();
    }
    default:
      return {};
  }
}

// What follows the escape.
LineEditor::Step LineEditor::on_escape(std::string_view sequence) {
  if (sequence == "b") return at_ = word_before(at_), changed();
  if (sequence == "f") return at_ = word_behind(at_), changed();
  if (sequence == "d") {
    erase(at_, word_behind(at_));
    return changed();
  }
  constexpr std::pair<std::string_view, char> kKeys[] = {
      {"[A", 'P'}, {"OA", 'P'}, {"[B", 'N'},  {"OB", 'N'}, {"[C", 'F'},  {"OC", 'F'},
      {"[D", 'B'}, {"OD", 'B'}, {"[H", 'A'},  {"OH", 'A'}, {"[1~", 'A'}, {"[7~", 'A'},
      {"[F", 'E'}, {"OF", 'E'}, {"[4~", 'E'}, {"[8~", 'E'}};
  for (auto [name, letter] : kKeys)
    if (sequence == name) return on_control(key(letter));
  if (sequence == "[1;5D") return at_ = word_before(at_), changed();
  if (sequence == "[1;5C") return at_ = word_behind(at_), changed();
  if (sequence == "[3~" && !text_.empty()) return on_control(key('D'));
  return {};
}

LineEditor::Step LineEditor::feed(char byte) {
  if (!escape_.empty()) {
    escape_.push_back(byte);
    bool longer =
        escape_.size() == 2 ? byte == '[' || byte == 'O' : escape_[1] == '[' && !(byte >= '@' && byte <= '~');
    if (longer && escape_.size() < kMaxEscape) return {};
    std::string sequence = std::exchange(escape_, "");
    return on_escape(std::string_view(sequence).substr(1));
  }
  if (byte == 27) {
    escape_ = byte;
    return {};
  }
  if (byte == '\n' || byte == '\r') {
    at_ = text_.size();
    // From within a line of several rows the next output comes below all of it.
    bool one_row = columns_ == 0 || width_ < columns_;
    std::string shown = one_row ? "" : refresh();
    return {.what = Step::What::line, .shown = shown + "\r\n"};
  }
  if (static_cast<unsigned char>(byte) < 0x20 || byte == 127) return on_control(byte);
  // A character is shown when it is whole; what is none is dropped.
  if (!continues(byte)) rune_.clear();
  rune_.push_back(byte);
  if (continues(rune_[0])) return rune_.clear(), Step{};
  if (rune_.size() < size_of_rune(rune_[0])) return {};
  return {.shown = insert(std::exchange(rune_, ""))};
}

}  // namespace osb::cli
