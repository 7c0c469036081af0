#include "base/log.h"

#include <unistd.h>

#include <atomic>

#include "base/clock.h"
#include "base/strings.h"

namespace osb::log {
namespace {

std::atomic<Level> g_level = Level::info;
std::string g_role;  // set once at start, before any other thread exists

// Values come from outside: a line must stay one line, and a value must not be able to imitate another field.
void append_value(std::string& out, std::string_view value) {
  bool plain = !value.empty();
  for (unsigned char c : value) plain = plain && c > ' ' && c != '"' && c != '=' && c != 0x7f;
  if (plain) {
    out.append(value);
    return;
  }
  out.push_back('"');
  for (unsigned char c : value) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out.append("\\n");
    } else if (c < ' ' || c == 0x7f) {
      const char* hex = "0123456789abcdef";
      out.append("\\x").push_back(hex[c >> 4]);
      out.push_back(hex[c & 15]);
    } else {
      out.push_back(static_cast<char>(c));
    }
  }
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
  for (char c : message) line.push_back(c == '\n' ? ' ' : c);
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
