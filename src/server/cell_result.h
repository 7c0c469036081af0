#pragma once

// What a cell said and gave, collected from the stream of its events, for callers who want one answer. Bytes
// go in as they come from execd, which belongs to the sandbox: they are bounded and believed in nothing.

#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::server {

class CellResult {
 public:
  static constexpr size_t kMaxText = 4 << 20;  // of each of the texts; the rest is cut off
  static constexpr size_t kMaxLine = 8 << 20;

  // Code::corrupt for what is no event stream.
  Result<void> feed(std::string_view bytes);
  bool complete() const { return complete_; }  // its end has been told
  // {"stdout","stderr","result"?,"error"?,"executionTime"?,"truncated"?}
  std::string to_json() const;

 private:
  Result<void> take(std::string_view line);
  void append(std::string& text, std::string_view more);
  int64_t elapsed(int64_t now_ms) const;

  std::string line_;
  std::string stdout_, stderr_, result_, error_;  // error_ is JSON
  bool has_result_ = false, complete_ = false, truncated_ = false;
  int64_t began_ms_ = -1;  // of the sandbox's clock
  int64_t execution_ms_ = -1;
};

}  // namespace osb::server
