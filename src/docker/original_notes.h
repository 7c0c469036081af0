#pragma once

// What the original server has changed of its sandboxes after it had made them: it keeps that in files, for
// an engine cannot change labels. Root reads the files when the service starts (cli/original_files.h); here
// is what they say.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/runtime.h"

namespace osb::docker {

struct OriginalNote {
  std::optional<std::map<std::string, std::string>> metadata = {};  // all of it, instead of labels
  std::optional<WallTime> expires = {};
};
using OriginalNotes = std::map<std::string, OriginalNote>;  // by the sandbox's id

// Both files' texts; "": there is none. One that cannot be read says nothing.
OriginalNote parse_note(std::string_view metadata, std::string_view expiration);

// All of them as one text and back. Code::corrupt.
std::string print_notes(const OriginalNotes& notes);
Result<OriginalNotes> parse_notes(std::string_view text);

// They count more than labels do.
void apply_note(const OriginalNotes& notes, runtime::Inherited& sandbox);

}  // namespace osb::docker
