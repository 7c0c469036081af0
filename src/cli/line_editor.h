#pragma once

// One line that a person types at a terminal: moving, deleting, going back to earlier lines. Bytes go in as
// they come; what has to be written to the terminal and what happened come out. Reads and writes nothing
// itself, so it waits for nobody.
//
//   editor.begin(">>> ", columns);        // write what it gives
//   auto step = editor.feed(byte);        // write step.shown, then act on step.what

#include <string>
#include <string_view>
#include <vector>

namespace osb::cli {

class LineEditor {
 public:
  static constexpr size_t kMaxLine = 64 << 10;  // bytes beyond that are not taken
  static constexpr size_t kMaxHistory = 1000;

  struct Step {
    enum class What { nothing, line, end, complete };
    What what = What::nothing;  // line: it is finished; end: Ctrl-D on an empty one; complete: Tab
    std::string shown = {};
  };

  // A new line. Columns of the terminal; 0 when nobody knows.
  std::string begin(std::string prompt, size_t columns);
  Step feed(char byte);

  const std::string& line() const { return text_; }
  std::string_view before_cursor() const { return std::string_view(text_).substr(0, at_); }
  // For completion: puts text at the cursor; lists words below, the line again after them.
  std::string insert(std::string_view text);
  std::string list(const std::vector<std::string>& words);

  // Earlier lines, the latest last. Empty ones and repetitions are not kept.
  void remember(std::string line);
  const std::vector<std::string>& history() const { return history_; }

 private:
  Step on_control(char key);
  Step on_escape(std::string_view sequence);
  Step changed();  // shown anew
  Step recall(size_t entry);
  void erase(size_t from, size_t to);
  size_t before(size_t at) const;  // the character in front of it
  size_t behind(size_t at) const;
  size_t word_before(size_t at) const;
  size_t word_behind(size_t at) const;
  std::string refresh();

  std::string prompt_, text_;
  size_t at_ = 0;       // of the cursor, in bytes
  size_t columns_ = 0;  // 0: endless
  size_t row_ = 0;      // of the cursor, from that of the prompt on
  size_t width_ = 0;    // of all that is shown
  std::string escape_;  // an escape sequence that is not complete
  std::string rune_;    // bytes of a character that is not complete
  std::vector<std::string> history_;
  size_t entry_ = 0;   // which of them is shown; history_.size() for none
  std::string typed_;  // what was there before going back
};

// Columns that a text takes on a terminal.
size_t width_of(std::string_view text);

}  // namespace osb::cli
