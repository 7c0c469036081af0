#pragma once

// Lists and maps of strings as JSON, both ways: printed into answers, and as columns of the state database.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace osb::json {

using StringMap = std::map<std::string, std::string>;

void append_list(std::string& out, std::span<const std::string> words);
void append_map(std::string& out, const StringMap& members);
std::string list_text(std::span<const std::string> words);
std::string map_text(const StringMap& members);

// Nothing when the text is anything else. Of members with one name the last counts.
std::optional<std::vector<std::string>> parse_list(std::string_view text);
std::optional<StringMap> parse_map(std::string_view text);

}  // namespace osb::json
