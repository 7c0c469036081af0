#include "server/preview_host.h"

#include <algorithm>
#include <array>

#include "base/ids.h"
#include "base/strings.h"
#include "server/origin_guard.h"

namespace osb::server {
namespace {

constexpr size_t kHashBytes = 12, kIdBytes = 16;
// Of both, in base 32; with the longest port it stays below the 63 characters of a label.
constexpr size_t kHandleSize = (8 * (kHashBytes + kIdBytes) + 4) / 5;
constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";  // host names do not know cases

using Bytes = std::array<uint8_t, kHashBytes + kIdBytes>;

std::string to_base32(const Bytes& bytes) {
  std::string out;
  uint32_t bits = 0;
  int held = 0;
  for (uint8_t byte : bytes) {
    bits = bits << 8 | byte;
    for (held += 8; held >= 5; held -= 5) out.push_back(kAlphabet[bits >> (held - 5) & 31]);
  }
  if (held > 0) out.push_back(kAlphabet[bits << (5 - held) & 31]);
  return out;
}

// `text` has kHandleSize characters of the alphabet.
Bytes from_base32(std::string_view text) {
  Bytes bytes{};
  uint32_t bits = 0;
  int held = 0;
  size_t next = 0;
  for (char c : text) {
    bits = bits << 5 | static_cast<uint32_t>(kAlphabet.find(c));
    held += 5;
    if (held < 8) continue;
    held -= 8;
    bytes[next++] = static_cast<uint8_t>(bits >> held);
  }
  return bytes;
}

std::string id_text(const uint8_t* bytes) {
  std::string out;
  for (size_t i = 0; i < kIdBytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out.push_back('-');
    out.push_back("0123456789abcdef"[bytes[i] >> 4]);
    out.push_back("0123456789abcdef"[bytes[i] & 15]);
  }
  return out;
}

// `id` is a UUID in its canonical form.
void id_bytes(std::string_view id, uint8_t* out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  size_t digits = 0;
  for (char c : id) {
    if (c == '-') continue;
    out[digits / 2] = static_cast<uint8_t>(out[digits / 2] << 4 | kDigits.find(c));
    ++digits;
  }
}

// The hash decides the pad, so that no two ids ever have the same one.
void encrypt(const EndpointTokens& tokens, Bytes& bytes) {
  std::string what = "preview pad ";
  what.append(reinterpret_cast<const char*>(bytes.data()), kHashBytes);
  Sha256Digest pad = tokens.keyed_hash(what);
  for (size_t i = 0; i < kIdBytes; ++i) bytes[kHashBytes + i] ^= pad[i];
}

struct Label {
  uint16_t port = 0;
  std::string handle = {};
};

// "3000-abc...", of a host below the domain.
std::optional<Label> label_of(std::string_view host, std::string_view domain) {
  if (host.size() < kHandleSize || host.find('-') > 5) return std::nullopt;  // most are names of the server
  std::string name = to_lower(host_without_port(host));
  if (domain.empty() || !name.ends_with(domain) || name.size() < domain.size() + 1) return std::nullopt;
  std::string_view label = std::string_view(name).substr(0, name.size() - domain.size());
  if (!label.ends_with('.')) return std::nullopt;
  label.remove_suffix(1);
  size_t dash = label.find('-');
  if (dash == label.npos || label.size() - dash - 1 != kHandleSize) return std::nullopt;
  std::string_view digits = label.substr(0, dash), handle = label.substr(dash + 1);
  auto port = parse_number<uint16_t>(digits);
  if (!port || *port == 0 || std::to_string(*port) != digits) return std::nullopt;
  if (handle.find_first_not_of(kAlphabet) != handle.npos) return std::nullopt;
  return Label{*port, std::string(handle)};
}

std::string handle_of(const EndpointTokens& tokens, std::string_view id, uint16_t port) {
  Bytes bytes{};
  std::string what = "preview " + std::to_string(port) + " ";
  Sha256Digest hash = tokens.keyed_hash(what.append(id));
  std::copy_n(hash.begin(), kHashBytes, bytes.begin());
  id_bytes(id, bytes.data() + kHashBytes);
  encrypt(tokens, bytes);
  return to_base32(bytes);
}

}  // namespace

std::optional<std::string> PreviewHosts::name(std::string_view id, uint16_t port) const {
  if (domain_.empty() || !is_uuid(id)) return std::nullopt;
  return std::to_string(port) + "-" + handle_of(tokens_, id, port) + "." + domain_;
}

bool PreviewHosts::is_preview(std::string_view host) const { return label_of(host, domain_).has_value(); }

std::optional<Preview> PreviewHosts::read(std::string_view host) const {
  auto label = label_of(host, domain_);
  if (!label) return std::nullopt;
  Bytes bytes = from_base32(label->handle);
  encrypt(tokens_, bytes);
  Preview preview{id_text(bytes.data() + kHashBytes), label->port};
  // Whatever came out: only what we would have written ourselves is ours.
  if (!is_uuid(preview.id) ||
      !constant_time_equals(label->handle, handle_of(tokens_, preview.id, preview.port)))
    return std::nullopt;
  return preview;
}

}  // namespace osb::server
