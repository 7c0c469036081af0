#include "cli/cell_reader.h"

#include <utility>

#include "base/strings.h"

namespace osb::cli {
namespace {

bool is_word_end(std::string_view line, std::string_view word) {
  if (!line.ends_with(word)) return false;
  line.remove_suffix(word.size());
  return line.empty() || line.back() == ' ' || line.back() == ';' || line.back() == '\t';
}

}  // namespace

std::optional<std::string> CellReader::feed(std::string_view line) {
  bool blank = trim(line).empty();
  if (cell_.empty() && blank) return std::nullopt;
  if (cell_.empty() && opens_block(trim(line))) block_ = true;
  cell_.append(line).append("\n");
  scan(line);
  bool open = depth_ > 0 || !quote_.empty() || continued_;
  if (open || (block_ && !blank)) return std::nullopt;
  return finish();
}

std::optional<std::string> CellReader::finish() {
  if (cell_.empty()) return std::nullopt;
  std::string cell = std::move(cell_);
  reset();
  while (cell.ends_with("\n\n")) cell.pop_back();
  return cell;
}

void CellReader::reset() {
  cell_.clear();
  quote_.clear();
  depth_ = 0;
  block_ = continued_ = false;
}

// Brackets outside strings and comments, and strings that are still open at the end of the line.
void CellReader::scan(std::string_view line) {
  bool python = language_ == "python", shell = language_ == "bash";
  continued_ = false;
  for (size_t i = 0; i < line.size(); ++i) {
    std::string_view rest = line.substr(i);
    if (!quote_.empty()) {
      if (rest[0] == '\\' && quote_ != "'") {
        ++i;
      } else if (rest.starts_with(quote_)) {
        i += quote_.size() - 1;
        quote_.clear();
      }
      continue;
    }
    char c = rest[0];
    if (c == '\\') {
      continued_ = rest.size() == 1;
      ++i;
    } else if (python && (rest.starts_with("\"\"\"") || rest.starts_with("'''"))) {
      quote_ = rest.substr(0, 3);
      i += 2;
    } else if (c == '"' || c == '\'' || (c == '`' && !python)) {
      quote_ = c;
    } else if (((python || shell) && c == '#' && (i == 0 || python || line[i - 1] == ' ')) ||
               (!python && !shell && rest.starts_with("//"))) {
      break;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth_;
    } else if (c == ')' || c == ']' || c == '}') {
      // In a shell `case` has closing ones of its own.
      if (depth_ > 0) --depth_;
    }
  }
  // Strings with one mark end with their line, except where a language lets them go on.
  bool lasting = quote_ == "`" || quote_.size() == 3 || shell;
  if (!lasting) {
    continued_ = continued_ || (!quote_.empty() && line.ends_with('\\'));
    quote_.clear();
  }
}

bool CellReader::opens_block(std::string_view line) const {
  if (language_ == "python") {
    size_t comment = line.find(" #");
    return trim(line.substr(0, comment)).ends_with(':') || line.starts_with('@') || line.starts_with("%%");
  }
  if (language_ != "bash") return false;
  for (std::string_view word : {"do", "then", "else", "in", "|", "&&", "||"}) {
    if (is_word_end(line, word)) return true;
  }
  return false;
}

}  // namespace osb::cli
