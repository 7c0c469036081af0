#pragma once

// One line cut into words as a POSIX shell would: blanks separate, quotes and backslashes keep together.
// Nothing else is special; no variable, pattern or operator is looked at.

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb {

// Code::invalid_argument: a quote or a backslash at the end is left open.
Result<std::vector<std::string>> shell_words(std::string_view line);

// A line that the above, and a shell, cut into these words again.
std::string quote_words(const std::vector<std::string>& words);

}  // namespace osb
