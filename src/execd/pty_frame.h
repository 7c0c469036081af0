#pragma once

// A text frame that a terminal's client sends, decoded. Pure, so that it can be tested and fuzzed by itself.

#include <string>
#include <string_view>
#include <variant>

#include "execd/terminal.h"

namespace osb::execd::pty {

struct Input {
  std::string bytes;
};
struct Resize {
  TerminalSize size;  // both dimensions are positive
};
struct Signal {
  int number = 0;  // one that clients may send
};
struct Ping {};
struct EndOfInput {};  // pipes: nothing follows what was sent
struct Unknown {       // of a type that nobody knows; worth an answer
  std::string type;
};
struct Ignored {};  // no JSON, or with values that mean nothing: by contract not worth an answer

using Frame = std::variant<Ignored, Input, Resize, Signal, Ping, EndOfInput, Unknown>;

Frame parse_text_frame(std::string_view text);

}  // namespace osb::execd::pty
