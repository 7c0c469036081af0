#pragma once

// Header values of the form `word; name=value; name="value"`: Content-Type and Content-Disposition.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace osb::http {

struct ParameterValue {
  std::string word;                                         // lower case: form-data, text/plain
  std::vector<std::pair<std::string, std::string>> params;  // names in lower case, each at most once

  const std::string* find(std::string_view name) const;  // null when it is not there
};

// Takes values quoted or bare (a bare one may hold anything but blanks at its ends, ';' and '"', because
// clients do that), empty parameters and blanks around ';' and '='. Everything else is
// Code::invalid_argument: a repeated name, text after a closing quote, a missing quote, control characters.
Result<ParameterValue> parse_parameters(std::string_view text);

// The value of a parameter whose name ends in '*': utf-8'en'na%C3%AFve. Gives UTF-8; takes utf-8 and
// iso-8859-1.
Result<std::string> decode_extended(std::string_view value);

}  // namespace osb::http
