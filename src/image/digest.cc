#include "image/digest.h"

#include <algorithm>
#include <cstdlib>

namespace osb::image {

Sha256::Sha256() : context_(libraries().EVP_MD_CTX_new()) {
  if (!context_ || libraries().EVP_DigestInit_ex(context_.get(), libraries().EVP_sha256(), nullptr) != 1)
    std::abort();
}

void Sha256::add(std::string_view bytes) {
  if (libraries().EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) std::abort();
}

std::string Sha256::hex() {
  unsigned char digest[32];
  unsigned length = 0;
  if (libraries().EVP_DigestFinal_ex(context_.get(), digest, &length) != 1 || length != sizeof digest)
    std::abort();
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (unsigned char byte : digest) {
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

Result<std::string> parse_digest(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  if (text.starts_with(kPrefix) && is_hex_digest(text.substr(kPrefix.size()))) {
    return std::string(text.substr(kPrefix.size()));
  }
  return fail(Code::unsupported, "a digest that is not sha256: " + std::string(text.substr(0, 80)));
}

}  // namespace osb::image
