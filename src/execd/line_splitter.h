#pragma once

// Turns the bytes of one output stream of a command into the texts of its events, one per line.
//
// LF, CR and CR LF end a line; a CR LF that two reads cut in half still counts once. A line's text has no
// line end, and clients join texts with a newline, so a blank line needs a text of its own: "\n\n" directly
// after a line that was not blank, "\n" otherwise (the only encoding that every published client joins back
// to the same output). What comes after the last line end waits until the line is complete or the stream
// ends, because sending it early would insert a line break.

#include <cstddef>
#include <string>
#include <string_view>

namespace osb::execd {

class LineSplitter {
 public:
  enum class CarriageReturn { ends_line, is_text };
  explicit LineSplitter(CarriageReturn cr = CarriageReturn::ends_line) : cr_(cr) {}

  // Longer lines become several texts, cut between code points: one client gives up on lines above 4 MiB.
  static constexpr size_t kMaxText = 256 * 1024;

  // Calls emit(std::string_view) for every text that `bytes` completes.
  template <class Emit>
  void feed(std::string_view bytes, Emit&& emit) {
    while (!bytes.empty()) {
      if (after_cr_) {
        after_cr_ = false;
        if (bytes.front() == '\n') {
          bytes.remove_prefix(1);
          continue;
        }
      }
      size_t end = cr_ == CarriageReturn::ends_line ? find_line_end(bytes) : bytes.find('\n');
      if (end == bytes.npos) {
        hold(bytes, emit);
        return;
      }
      after_cr_ = bytes[end] == '\r';
      std::string_view line = bytes.substr(0, end);
      if (cr_ == CarriageReturn::is_text) drop_final_cr(line);
      end_line(line, emit);
      bytes.remove_prefix(end + 1);
    }
  }

  // The stream has ended: whatever waits is a line.
  template <class Emit>
  void flush(Emit&& emit) {
    std::string_view nothing;
    if (cr_ == CarriageReturn::is_text) drop_final_cr(nothing);
    if (!partial_.empty()) end_line({}, emit);
    cut_ = false;
  }

 private:
  static size_t find_line_end(std::string_view bytes);
  // The longest prefix of at most kMaxText bytes that does not end inside a code point.
  static size_t cut_point(std::string_view text);

  void drop_final_cr(std::string_view& tail);

  template <class Emit>
  void hold(std::string_view bytes, Emit& emit) {
    partial_.append(bytes);
    while (partial_.size() > kMaxText) emit_front(emit);
  }

  template <class Emit>
  void emit_front(Emit& emit) {
    size_t n = cut_point(partial_);
    emit(std::string_view(partial_).substr(0, n));
    partial_.erase(0, n);
    cut_ = true;
  }

  template <class Emit>
  void end_line(std::string_view tail, Emit& emit) {
    if (partial_.empty() && tail.size() <= kMaxText) {
      if (!tail.empty()) {
        emit(tail);
      } else if (!cut_) {
        emit(blank_ ? std::string_view("\n") : std::string_view("\n\n"));
      }
      blank_ = tail.empty() && !cut_;
      cut_ = false;
      return;
    }
    hold(tail, emit);
    if (!partial_.empty()) emit(std::string_view(partial_));
    partial_.clear();
    if (partial_.capacity() > kMaxText / 4) partial_.shrink_to_fit();
    blank_ = false;
    cut_ = false;
  }

  CarriageReturn cr_;
  std::string partial_;
  bool after_cr_ = false;
  bool blank_ = true;  // nothing precedes, or a blank line does
  bool cut_ = false;   // part of the current line has been emitted already
};

}  // namespace osb::execd
