#include "interpreter/language.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "base/strings.h"
#include "execd/spawn.h"

// The bytes of every file in kernels/, from the build.
#define KERNEL_FILE(symbol, file) extern "C" const char symbol[], symbol##_end[];
#include "kernel_files.inc"
#undef KERNEL_FILE

namespace osb::interpreter {
namespace {

using Words = std::vector<std::string>;

std::string_view file_bytes(std::string_view name) {
#define KERNEL_FILE(symbol, file) \
  if (name == file) return {symbol, static_cast<size_t>(symbol##_end - symbol)};
#include "kernel_files.inc"
#undef KERNEL_FILE
  return {};
}

bool has_word(std::string_view words, std::string_view wanted) {
  for (std::string_view word : split(words, ' ')) {
    if (iequals(word, wanted)) return true;
  }
  return false;
}

}  // namespace

std::span<const Language> languages() {
  static const std::vector<Language> all{
#define KERNEL(name, aliases, interpreters, install, arguments, sources) \
  Language{name, aliases, interpreters, install, arguments, sources},
#include "interpreter/kernels/kernels.inc"
#undef KERNEL
  };
  return all;
}

const Language* find_language(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const Language& language : languages()) {
    if (iequals(language.name, name) || has_word(language.aliases, name)) return &language;
  }
  return nullptr;
}

Result<std::string> find_interpreter(const Language& language, const execd::Environment& env) {
  std::vector<std::string> path;
  if (const std::string* value = env.find("PATH")) path.push_back("PATH=" + *value);
  for (std::string_view name : split(language.interpreters, ' ')) {
    for (std::string& file : execd::executable_candidates(std::string(name), path)) {
      if (::access(file.c_str(), X_OK) == 0) return std::move(file);
    }
  }
  std::string wanted;
  for (std::string_view name : split(language.interpreters, ' ')) {
    wanted += (wanted.empty() ? "'" : " or '") + std::string(name) + "'";
  }
  return fail(Code::not_found, std::string(language.name) + " cannot be executed: this sandbox has no " +
                                   wanted + " in its PATH; install " + std::string(language.install) +
                                   " or use an image that has it");
}

Result<std::string> kernel_source(const Language& language) {
  std::string whole;
  for (const std::string& name : language.sources) {
    std::string_view bytes = file_bytes(name);
    if (bytes.empty()) return fail(Code::corrupt, "this build has no kernel file " + name);
    if (language.sources.size() > 1) whole += "\n#%% " + name + "\n";
    whole += bytes;
  }
  return whole;
}

Result<int> kernel_source_file(const Language& language) {
  static std::map<std::string_view, Fd> files;
  if (auto found = files.find(language.name); found != files.end()) return found->second.get();
  std::string whole = TRY(kernel_source(language));
  Fd file(::memfd_create("kernel", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return fail_errno("memfd");
  if (::write(file.get(), whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
    return fail_errno("memfd: write");
  }
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) < 0) return fail_errno("memfd: seal");
  int number = file.get();
  files.emplace(language.name, std::move(file));
  return number;
}

}  // namespace osb::interpreter
