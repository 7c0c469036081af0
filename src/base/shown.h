#pragma once

#include <string>
#include <string_view>

namespace osb {

// A text from outside for use inside a sentence: short, and one line.
std::string shown(std::string_view text);

}  // namespace osb
