#pragma once

// Environment variables as a value: what the entry process, commands and sessions are started with.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace osb::execd {

class Environment {
 public:
  // Of this process. The variables that hold execd's own credentials are left out: they are not for the code
  // it runs.
  static Environment of_process();

  const std::string* find(std::string_view name) const;
  std::string get(std::string_view name) const;  // "" when absent
  void set(std::string name, std::string value) { variables_[std::move(name)] = std::move(value); }
  void set_default(std::string_view name, std::string_view value);
  void remove(std::string_view name);
  void merge(const std::map<std::string, std::string>& later);
  auto begin() const { return variables_.begin(); }
  auto end() const { return variables_.end(); }
  size_t size() const { return variables_.size(); }

  // "NAME=value" for execve.
  std::vector<std::string> block() const;

 private:
  std::map<std::string, std::string, std::less<>> variables_;
};

// What becomes of $NAME and ${NAME} when NAME is not set.
enum class Undefined { empty, keep, error };

// Nothing when Undefined::error and a variable is missing; `missing` then holds its name. A '$' that no name
// follows stays. Special shell parameters ($1, $?, $$, ...), "${}" and an unclosed "${" vanish unless
// Undefined::keep.
std::optional<std::string> expand_variables(std::string_view text, const Environment& env,
                                            Undefined undefined, std::string* missing = nullptr);

}  // namespace osb::execd
