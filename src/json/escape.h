#pragma once

// JSON string literals from bytes that nobody checked: the output of commands on its way into the event
// stream.

#include <string>
#include <string_view>

namespace osb::json {

// Appends `bytes` as a quoted JSON string that is safe to put on a line of its own and into a page:
//   - a byte that is not part of valid UTF-8 becomes \ufffd, one for each such byte;
//   - control characters below U+0020 are escaped, and so are U+0085, U+2028 and U+2029, because some clients
//   cut lines there;
//   - '<', '>' and '&' are escaped, so that no HTML parser sees a tag in it.
// Everything else is copied. Plain text is copied in bulk.
void append_string(std::string& out, std::string_view bytes);

// Appends `bytes` as a quoted JSON string in which only what JSON itself needs is escaped. A byte that is not
// part of valid UTF-8 becomes U+FFFD: names of files are such bytes, and a client must be able to read the
// rest.
void append_minimal_string(std::string& out, std::string_view bytes);

}  // namespace osb::json
