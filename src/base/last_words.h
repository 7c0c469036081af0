#pragma once

// What a process said before it ended, short enough for an error message.

#include <string>
#include <string_view>

namespace osb {

// The last lines of a log whose lines begin with a time and a blank: without the times, at most ten lines and
// a thousand bytes, with `joint` between them. "" when it said nothing.
std::string last_words(std::string_view log, std::string_view joint);

}  // namespace osb
