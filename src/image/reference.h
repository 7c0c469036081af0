#pragma once

// Names of images: as people give them to local ones, and as clients ask for them.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::image {

inline constexpr char kHostImage[] = "host";
inline constexpr char kCodeInterpreter[] = "opensandbox/code-interpreter";

// Letters, digits and . _ - / : @, at most 255, beginning with a letter or digit, or with a registry's
// address in brackets. `host` is taken.
Result<void> check_name(std::string_view name);

// "debian.tar.gz" -> "debian"; what cannot be part of a name becomes '-'.
std::string name_from_file(std::string_view path);

// '*' stands for any characters, also none; everything else for itself.
bool matches(std::string_view pattern, std::string_view text);

// Every way in which an image that is asked for can be written: as it was, by the name in its registry, and
// with and without what that leaves to be understood (`default_registry`, library/, :latest).
std::vector<std::string> spellings(const std::string& asked, std::string_view default_registry);

// Which local names may serve what was asked for, best first: the name itself; what an alias says (an exact
// one before patterns, a longer pattern before a shorter one); the same image written differently
// (docker.io/library/, :latest); the local interpreter for any host's and any version's
// opensandbox/code-interpreter.
std::vector<std::string> candidates(const std::string& asked,
                                    const std::map<std::string, std::string>& aliases);

}  // namespace osb::image
