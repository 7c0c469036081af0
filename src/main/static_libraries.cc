// What a static executable has instead of a dynamic loader. It can load nothing that fits its own C library,
// so the libraries that other builds open when they need them are part of it, and every other name is not
// found: also for OpenSSL and SQLite, which would load extensions. The build binds dlopen and its kin to
// these with
// --wrap.

#include <cstring>
#include <string_view>

#include "image/libraries.h"
#include "tls/functions.h"

namespace {

struct Symbol {
  const char* name;
  void* address;
};

#define OSB_SYMBOL(name) {#name, reinterpret_cast<void*>(&::name)},
constexpr const char* kLibraries[] = {"libarchive.so.13", "libssl.so.3", "libcrypto.so.3"};
const Symbol kSymbols[] = {OSB_ARCHIVE_FUNCTIONS(OSB_SYMBOL) OSB_CRYPTO_FUNCTIONS(OSB_SYMBOL)
                               OSB_SSL_FUNCTIONS(OSB_SYMBOL) OSB_SSL_CRYPTO_FUNCTIONS(OSB_SYMBOL)};
#undef OSB_SYMBOL

}  // namespace

extern "C" {

void* __wrap_dlopen(const char* file, int) {
  for (const char* library : kLibraries) {
    if (file && std::strcmp(file, library) == 0) return const_cast<char*>(library);
  }
  return nullptr;
}

void* __wrap_dlsym(void*, const char* name) {
  for (const Symbol& symbol : kSymbols) {
    if (std::string_view(symbol.name) == name) return symbol.address;
  }
  return nullptr;
}

int __wrap_dlclose(void*) { return 0; }
const char* __wrap_dlerror() { return "a static executable loads no libraries"; }
}
