#pragma once

// FNV-1a, for names: short, the same everywhere, and no secret.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace osb {

class Fnv1a {
 public:
  void add(const void* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i)
      hash_ = (hash_ ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3u;
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace osb
