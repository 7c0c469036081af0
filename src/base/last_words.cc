#include "base/last_words.h"

#include <vector>

#include "base/strings.h"

namespace osb {

std::string last_words(std::string_view log, std::string_view joint) {
  constexpr size_t kMostLines = 10, kMostBytes = 1000;
  std::vector<std::string_view> lines;
  size_t bytes = 0;
  while (!log.empty() && lines.size() < kMostLines && bytes < kMostBytes) {
    size_t end = log.find_last_not_of('\n');
    if (end == log.npos) break;
    log = log.substr(0, end + 1);
    size_t begin = log.rfind('\n') + 1;  // npos + 1 is the beginning
    std::string_view line = log.substr(begin);
    size_t blank = line.find(' ');
    line = trim(blank == line.npos ? line : line.substr(blank + 1));
    log = log.substr(0, begin);
    if (line.empty()) continue;
    lines.push_back(line.substr(0, kMostBytes - bytes));
    bytes += lines.back().size();
  }
  std::string out;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!out.empty()) out += joint;
    out += *line;
  }
  return out;
}

}  // namespace osb
