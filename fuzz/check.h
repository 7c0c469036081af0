#pragma once

// A property of a fuzz target: when it does not hold, the input is a finding. Works in every build type.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#define CHECK(condition)                                                                  \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

namespace osb::fuzz {

// The input as text. The fuzzer has it in memory of exactly its size, so that the sanitizer sees the first
// byte that is read beyond it: no copy.
inline std::string_view text_of(const unsigned char* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace osb::fuzz
