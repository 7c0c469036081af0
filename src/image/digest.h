#pragma once

// SHA-256, by which layers and images are named.

#include <memory>
#include <string>
#include <string_view>

#include "base/hex.h"
#include "image/libraries.h"

namespace osb::image {

class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  // 64 lower-case hexadecimal digits. Once only.
  std::string hex();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { libraries().EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

std::string sha256(std::string_view bytes);

// 64 lower-case hexadecimal digits: the only digests that become names of files.
// "sha256:<digits>" -> the digits. Other algorithms are refused.
Result<std::string> parse_digest(std::string_view text);

}  // namespace osb::image
