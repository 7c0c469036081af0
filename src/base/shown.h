#pragma once

// A text from outside for use inside a sentence: short, and one line.

#include <string>
#include <string_view>

namespace osb {

std::string shown(std::string_view text);

}  // namespace osb
