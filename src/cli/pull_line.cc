#include "cli/pull_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace osb::cli {
namespace {

uint64_t number(const json::Field& field) {
  return static_cast<uint64_t>(std::max<int64_t>(0, field.integer().value_or(0)));
}

std::string bar(uint64_t done, uint64_t total) {
  constexpr size_t kWidth = 30;
  size_t filled = total == 0 ? 0 : static_cast<size_t>(kWidth * std::min(done, total) / total);
  return fmt::format("[{}{}] ", std::string(filled, '#'), std::string(kWidth - filled, ' '));
}

}  // namespace

PullLine::PullLine(Wanted wanted) : shown_(wanted == Wanted::yes && ::isatty(STDERR_FILENO) == 1) {}

void PullLine::clear() {
  if (dirty_) fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  dirty_ = false;
}

void PullLine::show(const json::bj::value& state, const char* done_bytes) {
  if (!shown_) return;
  json::Issues ignored;
  auto field = json::Field::root(state, ignored, "pull");
  bool measured = field["total"].integer().has_value();
  std::string text = (measured ? bar(number(field[done_bytes]), number(field["total"])) : "") +
                     field["message"].string().value_or("");
  // The words may be an engine's or a registry's.
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  // What goes on in the next row of the terminal is not written over.
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
    text.resize(std::min<size_t>(text.size(), size.ws_col - 1u));
  fmt::print(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
  dirty_ = true;
}

}  // namespace osb::cli
