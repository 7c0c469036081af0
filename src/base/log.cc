#include "base/log.h"

#include <unistd.h>

#include <atomic>

#include "base/clock.h"
#include "base/strings.h"

namespace osb::log {
namespace {

std::atomic<Level> g_level = Level::info;
std::string g_role;  // set once at start, before any other thread exists

// The length of the control character at `at`, 0 when there is none. Text comes from outside: a line must
// stay one line, and nothing in it may move a terminal's cursor. Controls also exist as two bytes of UTF-8
// (U+0080 to U+009F), and terminals obey those.
size_t control_length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  if (byte(at) < ' ' || byte(at) == 0x7f) return 1;
  return byte(at) == 0xc2 && byte(at + 1) >= 0x80 && byte(at + 1) < 0xa0 ? 2 : 0;
}

// Copies `text`, control characters as \n or \xNN, and with a backslash before every character of `quoted`.
void append_escaped(std::string& out, std::string_view text, std::string_view quoted) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (size_t length = control_length(text, i); length == 0) {
      if (quoted.contains(text[i])) out.push_back('\\');
      out.push_back(text[i]);
    } else if (text[i] == '\n') {
      out.append("\\n");
    } else {
      for (size_t end = i + length; i < end; ++i) {
        auto c = static_cast<unsigned char>(text[i]);
        out.append("\\x").push_back("0123456789abcdef"[c >> 4]);
        out.push_back("0123456789abcdef"[c & 15]);
      }
      --i;
    }
  }
}

// A value must not be able to imitate another field.
void append_value(std::string& out, std::string_view value) {
  bool plain = !value.empty();
  for (size_t i = 0; i < value.size(); ++i) {
    plain = plain && value[i] != ' ' && value[i] != '"' && value[i] != '=' && control_length(value, i) == 0;
  }
  if (plain) {
    out.append(value);
    return;
  }
  out.push_back('"');
  append_escaped(out, value, "\"\\");
  out.push_back('"');
}

}  // namespace

void set_level(Level level) { g_level = level; }
Level level() { return g_level; }
void set_role(std::string_view role) { g_role = role; }

Level level_from(std::string_view name) {
  std::string word = to_lower(name);
  if (word == "debug" || word == "trace") return Level::debug;
  if (word == "warn" || word == "warning") return Level::warn;
  if (word == "error" || word == "critical" || word == "fatal") return Level::error;
  return Level::info;
}

void write(Level level, std::string_view message, Fields fields) {
  if (level < g_level) return;
  static constexpr std::string_view kNames[] = {" DEBUG ", " INFO  ", " WARN  ", " ERROR "};
  std::string line = format_time(wall_now(), 3);
  line.append(kNames[static_cast<int>(level)]);
  if (!g_role.empty()) line.append(g_role).append(": ");
  append_escaped(line, message, "");
  for (const Field& f : fields) {
    line.push_back(' ');
    line.append(f.key).push_back('=');
    append_value(line, f.value);
  }
  line.push_back('\n');
  // One write call per line: lines of several processes on one descriptor do not mix.
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace osb::log
