#pragma once

// SHA-256 and HMAC over it, for the tokens that open a sandbox's ports. A small one of our own: the
// cryptography library would double the memory of the service and the time it takes to start, for one hash
// per request. No step depends on a secret by a branch or an index. Held against the published vectors.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace osb {

using Sha256Digest = std::array<uint8_t, 32>;

Sha256Digest sha256_digest(std::string_view message);
Sha256Digest hmac_sha256(std::string_view key, std::string_view message);
std::string to_hex(const Sha256Digest& digest);

}  // namespace osb
