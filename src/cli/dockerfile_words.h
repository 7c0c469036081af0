#pragma once

// The words of a Dockerfile's instruction: where one ends, and lists in JSON.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace osb::cli {

// At blanks that are neither quoted nor escaped; quotes stay. Nothing when a quote does not end.
std::optional<std::vector<std::string>> split_words(std::string_view text, char escape);

// ["a", "b"]; nothing when it is anything else.
std::optional<std::vector<std::string>> list_from(std::string_view text);

// Whether a shell would read lines that follow: <<EOF. They are no part of an instruction here.
bool has_heredoc(std::string_view text);

}  // namespace osb::cli
