#include "docker/base64url.h"

#include <cstdint>

namespace osb::docker {

std::string to_base64url(std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j)
      out.push_back(i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63]);
  }
  return out;
}

}  // namespace osb::docker
