#include "image/libraries.h"

#include <dlfcn.h>

#include <clocale>
#include <cstdlib>

namespace osb::image {
namespace {

Libraries loaded;
bool is_loaded = false;

Result<void*> open_library(const char* file, const char* package) {
  // Lazily: most of what they bring along is never called.
  void* library = ::dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (library) return library;
  return fail(Code::unsupported, std::string("importing images needs ") + file +
                                     ", which is not installed\n  remedy: apt-get install " + package);
}

template <class Function>
Result<void> find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function) return {};
  return fail(Code::unsupported, std::string("the installed library has no ") + name);
}

}  // namespace

Result<void> load_libraries() {
  if (is_loaded) return {};
  // libarchive turns the UTF-8 of pax names into the locale's characters; in the "C" locale it gives up on
  // names that are not ASCII.
  if (!std::setlocale(LC_CTYPE, "C.UTF-8")) {
    return fail(
        Code::unsupported,
        "the locale C.UTF-8 is missing, and names in archives cannot be read without it\n  remedy: copy "
        "the directory /usr/lib/locale/C.utf8 from a machine that has it (on Debian: apt-get install "
        "libc-bin)");
  }
  void* archive = TRY(open_library("libarchive.so.13", "libarchive13"));
  void* crypto = TRY(open_library("libcrypto.so.3", "libssl3"));
#define OSB_FIND(name) TRY(find(archive, #name, loaded.name));
  OSB_ARCHIVE_FUNCTIONS(OSB_FIND)
#undef OSB_FIND
#define OSB_FIND(name) TRY(find(crypto, #name, loaded.name));
  OSB_CRYPTO_FUNCTIONS(OSB_FIND)
#undef OSB_FIND
  is_loaded = true;
  return {};
}

const Libraries& libraries() {
  if (!is_loaded) std::abort();
  return loaded;
}

}  // namespace osb::image
