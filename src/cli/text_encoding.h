#pragma once

// Bytes of files as text in JSON, which has Unicode only.

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::cli {

enum class TextEncoding { utf8, latin1, base64 };

std::optional<TextEncoding> find_encoding(std::string_view name);  // utf-8, latin-1, base64, in any case

// Code::invalid_argument when the bytes are no text of this encoding.
Result<std::string> to_text(std::string bytes, TextEncoding encoding);
// Code::invalid_argument when the text cannot be written so.
Result<std::string> to_bytes(std::string text, TextEncoding encoding);

}  // namespace osb::cli
