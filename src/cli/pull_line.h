#pragma once

// How far an image is on its way, for people: one line of the terminal that is written over, and is gone
// when something else is printed. Where standard error is no terminal there is none.

#include <string>

#include "json/decode.h"

namespace osb::cli {

class PullLine {
 public:
  enum class Wanted { no, yes };
  explicit PullLine(Wanted wanted);
  PullLine(const PullLine&) = delete;
  ~PullLine() { clear(); }

  bool is_shown() const { return shown_; }  // what would be told is worth asking for
  // Before anything else is printed: that would go on in the same row.
  void clear();
  // A state of POST or GET /images/pull, or of a push with "uploaded"; without a total the words alone.
  void show(const json::bj::value& state, const char* done_bytes = "downloaded");
  // The same of a pull; null: nothing is known of it.
  void follow(const json::bj::value& state) { state.is_null() ? clear() : show(state); }

 private:
  bool shown_, dirty_ = false;
};

}  // namespace osb::cli
