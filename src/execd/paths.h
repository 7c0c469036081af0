#pragma once

// Paths as requests write them: $NAME and ${NAME} from an environment, a leading "~" for HOME, relative to a
// directory.

#include <string>
#include <string_view>

#include "base/error.h"
#include "execd/environment.h"

namespace osb::execd {

// Absolute and lexically clean: no ".", "..", empty components or trailing slash. `base` is absolute.
std::string clean_path(std::string_view path, std::string_view base);

// Code::invalid_argument when a variable or HOME is missing, or for a NUL byte. The result may still be
// relative.
Result<std::string> expand_path(std::string_view path, const Environment& env);

// expand_path() + clean_path(). A path that exists exactly as it was written is taken as it is, so that names
// which contain a '$' can be reached.
Result<std::string> resolve_path(std::string_view path, const Environment& env, std::string_view base);

std::string_view base_name(std::string_view path);    // of a clean path
std::string_view parent_path(std::string_view path);  // of a clean path; "/" for "/"

}  // namespace osb::execd
