#pragma once

// The pattern language of file search. It looks at one name (never at a path), case matters, dot files count.
//
//   *  any run          ?  one code point        [a-z] [!a] [^a]  a class       \c  c itself
//   {a,b,{c,d}}  alternatives        **  everything; "**/" in front means nothing for a single name
//   !(p)  what the pattern with p in this place does not match

#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::execd {

class Glob {
 public:
  // Code::invalid_argument says what is wrong with the pattern.
  static Result<Glob> parse(std::string pattern);
  // Gives up (false) on patterns whose alternatives and runs would take more than a bounded number of steps.
  bool matches(std::string_view name) const;

 private:
  explicit Glob(std::string pattern) : pattern_(std::move(pattern)) {}
  std::string pattern_;
};

}  // namespace osb::execd
