#include "server/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "server/config_keys.h"

namespace osb::server {
namespace {

constexpr size_t kMaxReported = 8;

// A sentence about a line of the file.
struct Remark {
  uint32_t line = 0;
  std::string text;
};

class KeyCheck {
 public:
  void walk(const toml::table& table, const std::string& path) {
    const KnownSection* section = find_section(path);
    for (const auto& [key, node] : table) {
      std::string_view name = key.str();
      uint32_t line = key.source().begin.line;
      std::string below = path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
      const KnownSection* sub = find_section(below);
      if (sub || has_sections_below(below)) {
        table_at(node, below, sub, line);
      } else if (section && find_key(*section, name) != KeyFound::no) {
        key_at(*section, name, line);
      } else if (node.is_table() || node.is_array_of_tables()) {
        unknown.push_back(
            {line, fmt::format("unknown section [{}]; {}", shown_name(below), suggest_section(below))});
      } else if (section) {
        key_at(*section, name, line);
      } else {
        unknown.push_back({line, fmt::format("unknown key `{}` in no section; {}", shown_name(name),
                                             suggest_key("", name))});
      }
    }
  }

  std::vector<Remark> unknown, foreign;

 private:
  void table_at(const toml::node& node, const std::string& path, const KnownSection* section, uint32_t line) {
    const toml::table* table = node.as_table();
    if (!table) {
      unknown.push_back(
          {line, fmt::format("{}: must be a table; write [{}] and its keys below", path, path)});
    } else if (section && section->read == "*") {
      return;  // Section::text_map() looks at them
    } else if (section && section->foreign == "*") {
      no_effect(path, line);
    } else {
      walk(*table, path);
    }
  }

  void key_at(const KnownSection& section, std::string_view name, uint32_t line) {
    switch (find_key(section, name)) {
      case KeyFound::read:
        return;
      case KeyFound::foreign:
        return no_effect(fmt::format("{}.{}", section.name, name), line);
      case KeyFound::no:
        unknown.push_back({line, fmt::format("unknown key `{}` in [{}]; {}", shown_name(name), section.name,
                                             suggest_key(section.name, name))});
    }
  }

  void no_effect(const std::string& key, uint32_t line) {
    foreign.push_back(
        {line, fmt::format("{}: other OpenSandbox servers know it; it has no effect here", key)});
  }
};

std::vector<std::string> in_order(std::vector<Remark> remarks, const std::string& source) {
  std::ranges::sort(remarks, {}, [](const Remark& remark) { return std::tie(remark.line, remark.text); });
  std::vector<std::string> out;
  for (const Remark& remark : remarks)
    out.push_back(fmt::format("{}:{}: {}", source, remark.line, remark.text));
  return out;
}

}  // namespace

std::string ConfigFile::place(const std::string& key) const {
  auto found = lines.find(key);
  return found == lines.end() ? source : fmt::format("{}:{}", source, found->second);
}

void ConfigFile::wrong(const std::string& key, std::string_view cause, std::string_view remedy) {
  if (error) return;
  error = Error{Code::invalid_argument, 0, fmt::format("{}: {}: {}; {}", place(key), key, cause, remedy)};
}

Section::Section(ConfigFile& file, std::string name) : file_(file), name_(std::move(name)) {
  table_ = file_.root.at_path(name_).as_table();
}

const toml::node* Section::find(std::string_view key) {
  const toml::node* node = table_ ? table_->get(key) : nullptr;
  if (node) file_.lines[path(key)] = node->source().begin.line;
  return node;
}

void Section::text(std::string_view key, std::string& out) {
  const toml::node* node = find(key);
  if (!node) return;
  auto value = node->value_exact<std::string>();
  if (!value) return wrong(key, "must be a string", fmt::format("write {} = \"...\"", key));
  out = *value;
}

void Section::number(std::string_view key, int64_t low, int64_t high,
                     const std::function<void(int64_t)>& set) {
  const toml::node* node = find(key);
  if (!node) return;
  auto value = node->value_exact<int64_t>();
  if (value && *value >= low && *value <= high) return set(*value);
  std::string range = high == std::numeric_limits<int64_t>::max() ? fmt::format("of at least {}", low)
                                                                  : fmt::format("from {} to {}", low, high);
  wrong(key, "must be a whole number " + range,
        fmt::format("correct it, or remove {} to get the default", key));
}

void Section::boolean(std::string_view key, bool& out) {
  const toml::node* node = find(key);
  if (!node) return;
  auto value = node->value_exact<bool>();
  if (!value) return wrong(key, "must be true or false", fmt::format("write {} = true, or remove it", key));
  out = *value;
}

void Section::texts(std::string_view key, std::vector<std::string>& out) {
  const toml::node* node = find(key);
  if (!node) return;
  const toml::array* array = node->as_array();
  std::vector<std::string> values;
  for (size_t i = 0; array && i < array->size(); ++i) {
    auto value = array->get(i)->value_exact<std::string>();
    if (!value) array = nullptr;
    if (value) values.push_back(*value);
  }
  if (!array) return wrong(key, "must be a list of strings", fmt::format("write {} = [\"...\"]", key));
  out = std::move(values);
}

void Section::text_map(std::string_view key, std::map<std::string, std::string>& out) {
  const toml::node* node = find(key);
  if (!node) return;
  const toml::table* table = node->as_table();
  if (!table)
    return wrong(key, "must be a table", fmt::format("write [{}] and its entries below", path(key)));
  for (const auto& [name, entry] : *table) {
    std::string below = fmt::format("{}.{}", key, shown_name(name.str()));
    file_.lines[path(below)] = name.source().begin.line;
    auto value = entry.value_exact<std::string>();
    if (!value) {
      return wrong(below, "must be a string",
                   "write the name, '=' and a quoted text; quote a name that has a dot in it");
    }
    out.insert_or_assign(std::string(name.str()), *value);
  }
}

Result<std::vector<std::string>> check_keys(const ConfigFile& file) {
  KeyCheck check;
  check.walk(file.root, "");
  if (check.unknown.empty()) return in_order(std::move(check.foreign), file.source);
  std::string message;
  std::vector<std::string> mistakes = in_order(std::move(check.unknown), file.source);
  for (size_t i = 0; i < mistakes.size() && i < kMaxReported; ++i)
    message.append(i == 0 ? "" : "\n").append(mistakes[i]);
  if (mistakes.size() > kMaxReported) message += fmt::format("\nand {} more", mistakes.size() - kMaxReported);
  return fail(Code::invalid_argument, std::move(message));
}

}  // namespace osb::server
