#pragma once

// Patterns of paths as COPY and .dockerignore have them: * and ? and [a-z] within one name, ** for any number
// of names (.dockerignore only), \ before a character that means itself.

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::cli {

bool has_wildcard(std::string_view pattern);
// One name. Takes time in proportion to the product of both lengths.
bool matches_name(std::string_view pattern, std::string_view name);

// "a/./b//c" -> a/b/c, "/a" -> a; ".." goes up, but never out. "" is the top.
std::string clean_path(std::string_view path);

// Which files of a context no instruction sees. The last line that matches counts; a directory that matches
// takes everything in it along.
class IgnoreList {
 public:
  // At most 64 KiB and 1,000 lines: Code::too_large.
  static Result<IgnoreList> parse(std::string_view text);
  bool ignores(std::string_view path) const;
  // Whether something below a directory that is ignored may be seen all the same.
  bool has_exceptions() const { return has_exceptions_; }

 private:
  struct Line {
    bool is_exception = false;
    std::vector<std::string> names;
  };
  std::vector<Line> lines_;
  bool has_exceptions_ = false;
};

inline constexpr size_t kMaxIgnoreFile = 64 << 10;

}  // namespace osb::cli
