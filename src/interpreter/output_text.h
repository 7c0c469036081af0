#pragma once

// Turns the bytes of one output stream of a kernel into the texts of its events.
//
// Unlike a command's, these texts keep their line ends and may hold many lines. They end where a line ends,
// because some clients put a line break between any two texts: what follows the last line end waits for the
// rest of its line, but only for a moment (the caller's: see take_rest()), so that a progress bar is seen.

#include <cstddef>
#include <string>
#include <string_view>

namespace osb::interpreter {

class OutputText {
 public:
  static constexpr size_t kMaxText = 256 * 1024;

  // Calls emit(std::string_view) for every text that `bytes` completes.
  template <class Emit>
  void feed(std::string_view bytes, Emit&& emit) {
    held_.append(bytes);
    size_t end = held_.rfind('\n');
    end = end == held_.npos ? 0 : end + 1;
    while (end > 0 || held_.size() > kMaxText) {
      size_t n = piece(end > 0 ? end : held_.size());
      emit(std::string_view(held_).substr(0, n));
      held_.erase(0, n);
      end -= end > n ? n : end;
    }
  }

  // Everything that waits; but while more may come, not the beginning of a code point.
  enum class More { may_come, none };
  template <class Emit>
  void take_rest(More more, Emit&& emit) {
    size_t n = more == More::none ? held_.size() : whole_code_points(held_);
    if (n > 0) emit(std::string_view(held_).substr(0, n));
    held_.erase(0, n);
    if (held_.capacity() > kMaxText / 4) held_.shrink_to_fit();
  }
  bool waiting() const { return !held_.empty(); }

 private:
  // How much of the first `end` bytes one event takes.
  size_t piece(size_t end) const;
  static size_t whole_code_points(std::string_view text);

  std::string held_;
};

}  // namespace osb::interpreter
