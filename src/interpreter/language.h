#pragma once

// The languages of code contexts: which program executes them and with which kernel (kernels/README.md).

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "execd/environment.h"

namespace osb::interpreter {

struct Language {
  std::string_view name;          // as answers show it
  std::string_view aliases;       // separated by spaces
  std::string_view interpreters;  // separated by spaces; the first that PATH has is executed
  std::string_view install;       // what to install when PATH has none
  std::vector<std::string> arguments;
  std::vector<std::string> sources;
};

std::span<const Language> languages();
// By name or alias, whatever its case. Null when there is none.
const Language* find_language(std::string_view name);

// The program that executes the language; Code::not_found with what to install.
Result<std::string> find_interpreter(const Language& language, const execd::Environment& env);

// What descriptor 4 of a kernel shows. Code::corrupt when the build lacks one of its files.
Result<std::string> kernel_source(const Language& language);
// The same as a sealed memory file, made once per language.
Result<int> kernel_source_file(const Language& language);

}  // namespace osb::interpreter
