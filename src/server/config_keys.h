#pragma once

// Which keys a configuration file may have, in one table. The check of a file (config_reader.h) reads it, and
// tests hold it against the code that reads the keys and against the skeleton that `init-config` writes.
// Values of any thread may read it: it never changes.

#include <string>
#include <string_view>
#include <vector>

namespace osb::server {

enum class KeyUse {
  read,     // has an effect here
  foreign,  // other OpenSandbox servers read it; here it has no effect, which one warning says
};

// A section of the file with its keys. Names are separated by blanks; "*" stands for any name.
struct KnownSection {
  std::string_view name;  // dotted: "native.images"
  std::string_view read, foreign;

  bool takes_any_name() const { return read == "*" || foreign == "*"; }
};
const std::vector<KnownSection>& known_sections();

// Null for a section that nobody has.
const KnownSection* find_section(std::string_view name);
// Whether a section lies below this name: "renew_intent" has "renew_intent.redis" below it.
bool has_sections_below(std::string_view name);

enum class KeyFound { no, read, foreign };
KeyFound find_key(const KnownSection& section, std::string_view name);

// What somebody who wrote this probably meant, as the end of a sentence: "did you mean `api_key`?".
std::string suggest_key(std::string_view section, std::string_view name);
std::string suggest_section(std::string_view name);

// A name out of a file inside a message: one line, and short.
std::string shown_name(std::string_view name);

}  // namespace osb::server
