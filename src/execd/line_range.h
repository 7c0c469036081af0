#pragma once

// A file by lines: ?offset=<first line, from 1>&limit=<how many>. Lines come out without their ends (LF, CR
// LF), joined with one LF, and with none behind the last.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::execd {

struct LineRange {
  uint64_t first = 1;
  uint64_t count = UINT64_MAX;
};

// Nothing inside when neither was given. Code::invalid_argument for anything but whole numbers from 1.
Result<std::optional<LineRange>> parse_line_range(const std::optional<std::string>& offset,
                                                  const std::optional<std::string>& limit);

// Cuts the lines of a range out of a file that comes in pieces.
class LineCutter {
 public:
  explicit LineCutter(LineRange range) : range_(range) {}
  std::string feed(std::string_view bytes);
  bool done() const { return line_ >= range_.first && line_ - range_.first >= range_.count; }

 private:
  LineRange range_;
  uint64_t line_ = 1;       // the one that the next byte belongs to
  bool separator_ = false;  // a line was finished: a newline comes before whatever follows
  std::string held_;        // carriage returns that may belong to a line end
};

}  // namespace osb::execd
