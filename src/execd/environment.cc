#include "execd/environment.h"

#include <unistd.h>

namespace osb::execd {
namespace {

constexpr std::string_view kCredentials[] = {"EXECD_ACCESS_TOKEN", "JUPYTER_TOKEN"};

bool is_name_char(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_special(char c) { return std::string_view("*#$@!?-0123456789").find(c) != std::string_view::npos; }

struct Reference {
  std::string_view name;  // empty: no variable
  size_t length = 0;      // of what follows the '$'
};

// `text` begins behind a '$'.
Reference parse_reference(std::string_view text) {
  if (text.empty()) return {};
  if (text[0] == '{') {
    size_t close = text.find('}');
    if (close == text.npos) return {{}, 1};
    return {text.substr(1, close - 1), close + 1};
  }
  if (is_special(text[0])) return {text.substr(0, 1), 1};
  size_t n = 0;
  while (n < text.size() && is_name_char(text[n])) ++n;
  return {text.substr(0, n), n};
}

}  // namespace

Environment Environment::of_process() {
  Environment env;
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view text(*entry);
    size_t equals = text.find('=');
    if (equals == text.npos || equals == 0) continue;
    env.set(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  }
  for (std::string_view name : kCredentials) env.remove(name);
  return env;
}

const std::string* Environment::find(std::string_view name) const {
  auto it = variables_.find(name);
  return it == variables_.end() ? nullptr : &it->second;
}

std::string Environment::get(std::string_view name) const {
  const std::string* value = find(name);
  return value ? *value : std::string();
}

void Environment::set_default(std::string_view name, std::string_view value) {
  if (!find(name)) variables_.emplace(name, value);
}

void Environment::remove(std::string_view name) {
  auto it = variables_.find(name);
  if (it != variables_.end()) variables_.erase(it);
}

void Environment::merge(const std::map<std::string, std::string>& later) {
  for (const auto& [name, value] : later) variables_[name] = value;
}

std::vector<std::string> Environment::block() const {
  std::vector<std::string> out;
  out.reserve(variables_.size());
  for (const auto& [name, value] : variables_) out.push_back(name + "=" + value);
  return out;
}

std::optional<std::string> expand_variables(std::string_view text, const Environment& env,
                                            Undefined undefined, std::string* missing) {
  std::string out;
  while (true) {
    size_t dollar = text.find('$');
    out.append(text.substr(0, dollar));
    if (dollar == text.npos) return out;
    text.remove_prefix(dollar + 1);
    Reference ref = parse_reference(text);
    const std::string* value = env.find(ref.name);
    bool special = ref.name.size() == 1 && is_special(ref.name[0]);
    if (value && !special) {
      out.append(*value);
    } else if (undefined == Undefined::keep || (ref.name.empty() && ref.length == 0)) {
      out.push_back('$');
      out.append(text.substr(0, ref.length));
    } else if (undefined == Undefined::error && !ref.name.empty() && !special) {
      if (missing) missing->assign(ref.name);
      return std::nullopt;
    }
    text.remove_prefix(ref.length);
  }
}

}  // namespace osb::execd
