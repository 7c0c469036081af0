#include "json/string_lists.h"

#include "json/decode.h"
#include "json/escape.h"

namespace osb::json {

void append_list(std::string& out, std::span<const std::string> words) {
  out.push_back('[');
  bool first = true;
  for (const std::string& word : words) {
    if (!std::exchange(first, false)) out.push_back(',');
    append_string(out, word);
  }
  out.push_back(']');
}

void append_map(std::string& out, const StringMap& members) {
  out.push_back('{');
  bool first = true;
  for (const auto& [key, value] : members) {
    if (!std::exchange(first, false)) out.push_back(',');
    append_string(out, key);
    out.push_back(':');
    append_string(out, value);
  }
  out.push_back('}');
}

std::string list_text(std::span<const std::string> words) {
  std::string out;
  append_list(out, words);
  return out;
}

std::string map_text(const StringMap& members) {
  std::string out;
  append_map(out, members);
  return out;
}

std::optional<std::vector<std::string>> parse_list(std::string_view text) {
  if (text == "[]") return std::vector<std::string>();
  auto value = parse(text);
  if (!value || !value->is_array()) return std::nullopt;
  std::vector<std::string> out;
  for (const auto& element : value->get_array()) {
    if (!element.is_string()) return std::nullopt;
    out.emplace_back(element.get_string());
  }
  return out;
}

std::optional<StringMap> parse_map(std::string_view text) {
  if (text == "{}") return StringMap();
  auto value = parse(text);
  if (!value || !value->is_object()) return std::nullopt;
  StringMap out;
  for (const auto& member : value->get_object()) {
    if (!member.value().is_string()) return std::nullopt;
    out.insert_or_assign(member.key(), std::string(member.value().get_string()));
  }
  return out;
}

}  // namespace osb::json
