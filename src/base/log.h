#pragma once

// One line per event on standard error: time, level, message, then key=value pairs. The same format in every
// process of ours, so that the lines of server, launcher and execd can be read side by side. Safe to call
// from any thread.
//   2026-01-02T03:04:05.678Z INFO  sandbox running id=0198... ms=4

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace osb::log {

enum class Level { debug, info, warn, error };

struct Field {
  std::string_view key;
  std::string value;
  Field(std::string_view k, std::string v) : key(k), value(std::move(v)) {}
  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(v) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  Field(std::string_view k, T v) : key(k), value(std::to_string(v)) {}
};
using Fields = std::initializer_list<Field>;

void set_level(Level level);
Level level();
// Names as in configuration files, any case; unknown names mean info.
Level level_from(std::string_view name);
// The word that starts each message of this process, for example "launcher".
void set_role(std::string_view role);

void write(Level level, std::string_view message, Fields fields = {});
inline void debug(std::string_view m, Fields f = {}) { write(Level::debug, m, f); }
inline void info(std::string_view m, Fields f = {}) { write(Level::info, m, f); }
inline void warn(std::string_view m, Fields f = {}) { write(Level::warn, m, f); }
inline void error(std::string_view m, Fields f = {}) { write(Level::error, m, f); }

}  // namespace osb::log
