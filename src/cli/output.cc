#include "cli/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/strings.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
constexpr size_t kDeep = 40;  // more than parse() lets in

// What comes from sandboxes ends up on a terminal: control characters do not, except the line feed of a text.
std::string clean(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; }, '?');
  return out;
}

void pretty(const bj::value& value, std::string& out, size_t depth) {
  std::string pad(2 * (depth + 1), ' '), end(2 * depth, ' ');
  if (const auto* array = value.if_array(); array && !array->empty() && depth < kDeep) {
    out += "[\n";
    for (const bj::value& one : *array) {
      out += pad;
      pretty(one, out, depth + 1);
      out += &one == &array->back() ? "\n" : ",\n";
    }
    out += end + "]";
  } else if (const auto* object = value.if_object(); object && !object->empty() && depth < kDeep) {
    out += "{\n";
    size_t left = object->size();
    for (const auto& [name, member] : *object) {
      out += pad + json::print(bj::value(name)) + ": ";
      pretty(member, out, depth + 1);
      out += --left == 0 ? "\n" : ",\n";
    }
    out += end + "}";
  } else {
    out += json::print(value);
  }
}

// A scalar that reads back as the same text. Whatever could be taken for something else is quoted, as JSON
// is: every reader of YAML takes that.
std::string yaml_text(std::string_view text) {
  bool plain = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.' || c == '-' || c == ' ';
  });
  bool letter =
      plain && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z') || text[0] == '/');
  for (std::string_view word : {"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
    if (iequals(text, word)) letter = false;
  if (letter && !text.ends_with(' ')) return std::string(text);
  return json::print(bj::value(text));
}

void yaml_into(const bj::value& value, std::string& out, size_t depth, bool in_list) {
  std::string pad(2 * depth, ' ');
  if (const auto* array = value.if_array(); array && !array->empty() && depth < kDeep) {
    for (const bj::value& one : *array) {
      out += pad + "-";
      bool nested =
          (one.is_array() && !one.as_array().empty()) || (one.is_object() && !one.as_object().empty());
      if (nested && one.is_object()) {
        yaml_into(one, out, depth + 1, true);
      } else {
        out += nested ? "\n" : " ";
        yaml_into(one, out, depth + 1, false);
      }
    }
  } else if (const auto* object = value.if_object(); object && !object->empty() && depth < kDeep) {
    std::map<std::string_view, const bj::value*> members;
    for (const auto& [name, member] : *object) members[name] = &member;
    for (const auto& [name, member] : members) {
      out += std::exchange(in_list, false) ? " " : pad;
      out += yaml_text(name) + ":";
      bool nested = (member->is_array() && !member->as_array().empty()) ||
                    (member->is_object() && !member->as_object().empty());
      out += nested ? "\n" : " ";
      yaml_into(*member, out, depth + (member->is_array() ? 0 : 1), false);
    }
  } else if (value.is_string()) {
    out += yaml_text(value.as_string()) + "\n";
  } else {
    out += json::print(value) + "\n";
  }
}

// As the published client shows values in tables.
std::string shown_value(const bj::value& value, bool inside = false) {
  if (value.is_null()) return "None";
  if (const auto* text = value.if_string()) return inside ? "'" + clean(*text) + "'" : clean(*text);
  if (const bool* yes = value.if_bool()) return *yes ? "True" : "False";
  std::string out;
  if (const auto* array = value.if_array()) {
    for (const bj::value& one : *array) out += (out.empty() ? "" : ", ") + shown_value(one, true);
    return "[" + out + "]";
  }
  if (const auto* object = value.if_object()) {
    for (const auto& [name, member] : *object)
      out += fmt::format("{}'{}': {}", out.empty() ? "" : ", ", clean(name), shown_value(member, true));
    return "{" + out + "}";
  }
  return json::print(value);
}

std::string cell(std::string_view column, const bj::value* value, std::string_view absent) {
  if (!value || value->is_null()) return std::string(absent);
  if (column == "status" && value->is_string()) return with_icon(shown_value(*value));
  return shown_value(*value);
}

size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::string_view line : split(text, '\n')) out.emplace_back(line);
  return out;
}

}  // namespace

std::string with_icon(std::string_view state) {
  static constexpr std::pair<std::string_view, std::string_view> kIcons[] = {
      {"running", "●"},    {"ready", "●"},  {"pending", "◐"},  {"creating", "◐"},
      {"pausing", "⏸"},    {"paused", "⏸"}, {"stopping", "○"}, {"stopped", "○"},
      {"terminated", "○"}, {"failed", "✗"}, {"created", "✦"}};
  for (auto [name, icon] : kIcons)
    if (iequals(state, name)) return fmt::format("{} {}", icon, state);
  return std::string(state);
}

std::string pretty_json(const bj::value& value) {
  std::string out;
  pretty(value, out, 0);
  return out;
}

std::string yaml(const bj::value& value) {
  std::string out;
  yaml_into(value, out, 0, false);
  return out;
}

std::string boxed_table(std::string_view title, const std::vector<std::vector<std::string>>& rows,
                        bool ruled) {
  std::vector<size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i)
      for (const std::string& line : lines_of(row[i])) width[i] = std::max(width[i], width_of(line));
  }
  auto rule = [&](std::string_view left, std::string_view middle, std::string_view right) {
    std::string out(left);
    for (size_t i = 0; i < width.size(); ++i) {
      for (size_t n = 0; n < width[i] + 2; ++n) out += "─";
      out += i + 1 < width.size() ? middle : right;
    }
    return out + "\n";
  };
  size_t whole = width.size() + 1;
  for (size_t one : width) whole += one + 2;
  std::string out(whole > width_of(title) ? (whole - width_of(title)) / 2 : 0, ' ');
  out += std::string(title) + "\n" + rule("╭", "┬", "╮");
  for (size_t n = 0; n < rows.size(); ++n) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (const std::string& one : rows[n])
      height = std::max(height, cells.emplace_back(lines_of(one)).size());
    for (size_t line = 0; line < height; ++line) {
      for (size_t i = 0; i < width.size(); ++i) {
        std::string text = i < cells.size() && line < cells[i].size() ? cells[i][line] : "";
        out += "│ " + text + std::string(width[i] - width_of(text) + 1, ' ');
      }
      out += "│\n";
    }
    if (n + 1 < rows.size() && (n == 0 || ruled)) out += rule("├", "┼", "┤");
  }
  return out + rule("╰", "┴", "╯");
}

void Output::options(CLI::App& app, std::vector<std::string> formats) {
  format_ = formats.front();
  std::string words;
  for (const std::string& one : formats) words += (words.empty() ? "" : ", ") + one;
  option_ = app.add_option("-o,--output", format_, "how to print it: " + words)
                ->check(CLI::IsMember(std::move(formats)))
                ->type_name("FORMAT");
}

bool Output::printed(const bj::value& value) const {
  if (format_ == "json") fmt::print("{}\n", pretty_json(value));
  if (format_ == "yaml") fmt::print("{}", yaml(value));
  return format_ == "json" || format_ == "yaml";
}

void Output::ok(const std::string& message) const {
  if (!printed(bj::object{{"status", "ok"}, {"message", message}})) fmt::print("OK: {}\n", clean(message));
}

void Output::warn(const std::string& message) const {
  if (!printed(bj::object{{"status", "warning"}, {"message", message}}))
    fmt::print(stderr, "WARNING: {}\n", clean(message));
}

void Output::record(std::string_view title, const bj::object& members) const {
  if (printed(members)) return;
  std::vector<std::vector<std::string>> rows{{"Key", "Value"}};
  for (const auto& [name, value] : members) rows.push_back({std::string(name), cell(name, &value, "-")});
  fmt::print("{}", boxed_table(title, rows, true));
}

void Output::made(std::string_view title, const bj::object& members) const {
  if (printed(members)) return;
  fmt::print("--- {} ---\n", title);
  for (const auto& [name, value] : members)
    fmt::print("  {}: {}\n", std::string_view(name), shown_value(value));
}

void Output::rows(std::string_view title, const std::vector<std::string>& columns, const bj::array& rows,
                  const bj::value& whole) const {
  if (printed(whole)) return;
  std::vector<std::vector<std::string>> table(1);
  for (std::string name : columns) {
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    table[0].push_back(std::move(name));
  }
  for (const bj::value& row : rows) {
    auto& cells = table.emplace_back();
    for (const std::string& name : columns)
      cells.push_back(cell(name, row.is_object() ? row.as_object().if_contains(name) : nullptr, "None"));
  }
  fmt::print("{}", boxed_table(title, table, false));
}

}  // namespace osb::cli
