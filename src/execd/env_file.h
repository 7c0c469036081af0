#pragma once

// The file named by EXECD_ENVS: variables that every command and session gets, re-read each time. Clients
// append to it from inside the sandbox, people edit it by hand.
//
//   KEY=value             to the end of the line, trimmed; $NAME and ${NAME} expand, unknown ones to nothing
//   KEY='value'           literal, may span lines
//   KEY="value"           \\ \" \n \r \t \$ are escapes, may span lines; $NAME expands where NAME is known
//   export KEY=value      the same
//   # comment
//
// The last entry of a key wins. Lines that are none of these are skipped. A value that merely begins with a
// quote but is not closed by it is taken as a plain value.

#include <map>
#include <string>
#include <string_view>

#include "execd/environment.h"

namespace osb::execd {

inline constexpr size_t kMaxEnvFileBytes = 4 << 20;

std::map<std::string, std::string> parse_env_file(std::string_view text, const Environment& base);

// Empty when the file is missing or unreadable; it is logged once for as long as the reason stays the same.
std::map<std::string, std::string> read_env_file(const std::string& path, const Environment& base);

}  // namespace osb::execd
