#include "execd/line_range.h"

#include "base/strings.h"

namespace osb::execd {
namespace {

Result<uint64_t> parse_count(const std::string& text, const char* name) {
  auto number = parse_number<uint64_t>(text);
  if (!number || *number == 0)
    return fail(Code::invalid_argument, std::string(name) + " must be a whole number, 1 or more");
  return *number;
}

}  // namespace

Result<std::optional<LineRange>> parse_line_range(const std::optional<std::string>& offset,
                                                  const std::optional<std::string>& limit) {
  if (!offset && !limit) return std::nullopt;
  LineRange range;
  if (offset) range.first = TRY(parse_count(*offset, "offset"));
  if (limit) range.count = TRY(parse_count(*limit, "limit"));
  return range;
}

std::string LineCutter::feed(std::string_view bytes) {
  std::string out;
  while (!bytes.empty() && !done()) {
    size_t newline = bytes.find('\n');
    std::string_view part = bytes.substr(0, newline);
    bytes.remove_prefix(newline == bytes.npos ? bytes.size() : newline + 1);
    if (line_ >= range_.first) {
      size_t text = part.find_last_not_of('\r');
      if (text != part.npos) {
        if (separator_) out += '\n';
        separator_ = false;
        out.append(held_).append(part.substr(0, text + 1));
        held_.clear();
      }
      held_.append(part.substr(text == part.npos ? 0 : text + 1));
      if (newline != std::string_view::npos) {
        // The line ends here: what was held back belonged to its end. A line without text is still a line.
        if (text == part.npos && separator_) out += '\n';
        held_.clear();
        separator_ = true;
      }
    }
    if (newline != std::string_view::npos) ++line_;
  }
  return out;
}

}  // namespace osb::execd
