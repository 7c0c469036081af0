#pragma once

// Cuts typed lines into cells, as Python's own prompt does: a line that is complete is a cell; one that opens
// something goes on until that is closed, and a block that has no closing word (Python after a colon, a loop
// of a shell) until a blank line. Knows little of the languages: brackets, quotes, comments.

#include <optional>
#include <string>
#include <string_view>

namespace osb::cli {

class CellReader {
 public:
  explicit CellReader(std::string language) : language_(std::move(language)) {}

  // A line without its end. The cell that it completes, if it does.
  std::optional<std::string> feed(std::string_view line);
  bool within() const { return !cell_.empty(); }  // a cell has begun
  std::optional<std::string> finish();            // what is there at the end of the input
  void reset();

 private:
  void scan(std::string_view line);
  bool opens_block(std::string_view line) const;

  std::string language_, cell_;
  std::string quote_;  // the closing mark of a string that may hold line ends
  int depth_ = 0;
  bool block_ = false;      // ends with a blank line
  bool continued_ = false;  // the last line ended with a backslash
};

}  // namespace osb::cli
