#include "egress/client_hello.h"

#include <algorithm>
#include <cstdint>

namespace osb::egress {
namespace {

using Kind = Spoken::Kind;

constexpr uint8_t kHandshake = 22, kClientHello = 1;
constexpr uint16_t kServerName = 0;
constexpr size_t kMostRecord = 16384 + 256;

class Bytes {
 public:
  explicit Bytes(std::string_view all) : all_(all) {}
  bool failed() const { return failed_; }
  bool empty() const { return all_.empty() || failed_; }
  uint32_t number(size_t size) {
    uint32_t value = 0;
    for (char c : take(size)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  std::string_view take(size_t size) {
    if (size > all_.size()) failed_ = true;
    if (failed_) return {};
    std::string_view taken = all_.substr(0, size);
    all_.remove_prefix(size);
    return taken;
  }
  // What a length of so many bytes announces.
  Bytes block(size_t length_size) {
    Bytes inner(take(number(length_size)));
    inner.failed_ = failed_;
    return inner;
  }

 private:
  std::string_view all_;
  bool failed_ = false;
};

// The handshake message, put together from its records. Nothing: it is none. Shorter than it says: more to
// come.
struct Handshake {
  bool is_one = true;
  bool whole = false;
  std::string message = {};
};

Handshake collect(std::string_view bytes) {
  Handshake out;
  while (!bytes.empty()) {
    if (static_cast<uint8_t>(bytes[0]) != kHandshake) return {.is_one = false};
    if (bytes.size() >= 2 && bytes[1] != 3) return {.is_one = false};
    if (bytes.size() < 5) return out;
    size_t size = static_cast<size_t>(static_cast<uint8_t>(bytes[3])) << 8 | static_cast<uint8_t>(bytes[4]);
    if (size == 0 || size > kMostRecord) return {.is_one = false};
    bytes.remove_prefix(5);
    out.message.append(bytes.substr(0, size));
    bytes.remove_prefix(std::min(size, bytes.size()));
    if (out.message.empty()) return out;
    if (static_cast<uint8_t>(out.message[0]) != kClientHello) return {.is_one = false};
    if (out.message.size() < 4) continue;
    size_t length = static_cast<size_t>(static_cast<uint8_t>(out.message[1])) << 16 |
                    static_cast<size_t>(static_cast<uint8_t>(out.message[2])) << 8 |
                    static_cast<uint8_t>(out.message[3]);
    if (length > kMostSpoken) return {.is_one = false};
    if (out.message.size() >= 4 + length) {
      out.message.resize(4 + length);
      out.whole = true;
      return out;
    }
  }
  return out;
}

bool is_host_text(std::string_view host) {
  for (char c : host) {
    if (c <= ' ' || c >= 0x7f) return false;
  }
  return !host.empty() && host.size() <= 255;
}

Spoken server_name(Bytes extension) {
  Bytes list = extension.block(2);
  Spoken spoken{Kind::tls};
  while (!list.empty()) {
    uint32_t type = list.number(1);
    Bytes name = list.block(2);
    if (list.failed()) return {Kind::refused};
    if (type != 0) continue;
    if (!spoken.host.empty()) return {Kind::refused};
    std::string host;
    while (!name.empty()) host += name.take(1);
    if (!is_host_text(host)) return {Kind::refused};
    spoken.host = std::move(host);
  }
  return extension.failed() || list.failed() ? Spoken{Kind::refused} : spoken;
}

bool is_method_byte(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

std::string lower(std::string_view text) {
  std::string out;
  for (char c : text) out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
  return out;
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_port_text(std::string_view port) {
  return port.empty() || (port[0] == ':' && port.find_first_not_of("0123456789", 1) == port.npos);
}

// "example.com:80" without its port; nothing when it is neither a name nor an address.
std::optional<std::string> host_of(std::string_view authority) {
  if (authority.find('@') != authority.npos) return std::nullopt;
  bool bracketed = authority.starts_with('[');
  size_t end = bracketed ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (end == authority.npos) return std::nullopt;
  std::string_view host = bracketed ? authority.substr(1, end - 1) : authority.substr(0, end);
  if (!is_host_text(host) || !is_port_text(authority.substr(bracketed ? end + 1 : end))) return std::nullopt;
  return std::string(host);
}

// The host in "GET http://host/path HTTP/1.1" or "CONNECT host:443 HTTP/1.1"; empty when there is none.
std::optional<std::string> host_of_line(std::string_view line) {
  size_t space = line.find(' ');
  std::string_view target = line.substr(space + 1);
  target = target.substr(0, target.find(' '));
  if (line.substr(0, space) == "CONNECT") return host_of(target);
  size_t scheme = target.find("://");
  if (target.starts_with('/') || scheme == target.npos) return std::string();
  target.remove_prefix(scheme + 3);
  return host_of(target.substr(0, target.find_first_of("/?#")));
}

}  // namespace

Spoken read_client_hello(std::string_view bytes) {
  Handshake shake = collect(bytes);
  if (!shake.is_one) return {Kind::other};
  if (!shake.whole) return {bytes.size() >= kMostSpoken ? Kind::refused : Kind::more};
  Bytes hello(std::string_view(shake.message).substr(4));
  hello.take(2 + 32);    // version, random
  (void)hello.block(1);  // session
  (void)hello.block(2);  // ciphers
  (void)hello.block(1);  // compression
  if (hello.failed()) return {Kind::refused};
  if (hello.empty()) return {Kind::tls};  // extensions are optional
  Bytes extensions = hello.block(2);
  std::optional<Spoken> found;
  while (!extensions.empty()) {
    auto type = static_cast<uint16_t>(extensions.number(2));
    Bytes extension = extensions.block(2);
    if (extensions.failed()) return {Kind::refused};
    if (type != kServerName) continue;
    if (found) return {Kind::refused};
    found = server_name(extension);
  }
  if (extensions.failed() || hello.failed()) return {Kind::refused};
  return found ? *found : Spoken{Kind::tls};
}

Spoken read_http_head(std::string_view bytes) {
  size_t method = 0;
  while (method < bytes.size() && is_method_byte(bytes[method])) ++method;
  constexpr size_t kMostMethod = 24;
  if (method > kMostMethod || (method < bytes.size() && (method == 0 || bytes[method] != ' ')))
    return {Kind::other};
  if (method == bytes.size()) return {Kind::more};
  size_t line_end = bytes.find('\n');
  if (line_end == bytes.npos) return {bytes.size() >= kMostSpoken ? Kind::other : Kind::more};
  std::string_view line = bytes.substr(0, line_end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  size_t version = line.rfind(' ');
  // Other protocols have lines, too, that begin with a word: HELO, USER, NICK.
  if (version == line.npos || !line.substr(version + 1).starts_with("HTTP/")) return {Kind::other};
  auto host = host_of_line(line);
  if (!host) return {Kind::refused};
  std::string field;
  bool has_field = false;
  for (std::string_view rest = bytes.substr(line_end + 1);;) {
    size_t end = rest.find('\n');
    if (end == rest.npos) return {bytes.size() >= kMostSpoken ? Kind::refused : Kind::more};
    std::string_view header = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (header.ends_with('\r')) header.remove_suffix(1);
    if (header.empty()) break;
    // Folded lines and blanks before a colon are read differently by different servers.
    size_t colon = header.find(':');
    if (colon == header.npos || header[0] == ' ' || header[0] == '\t' || header.find('\0') != header.npos)
      return {Kind::refused};
    std::string name = lower(header.substr(0, colon));
    if (name.find(' ') != name.npos || name.find('\t') != name.npos) return {Kind::refused};
    if (name != "host") continue;
    if (has_field) return {Kind::refused};
    has_field = true;
    std::string_view value = without_blanks(header.substr(colon + 1));
    if (value.empty()) continue;
    auto named = host_of(value);
    if (!named) return {Kind::refused};
    field = std::move(*named);
  }
  if (!host->empty() && !field.empty() && lower(*host) != lower(field)) return {Kind::refused};
  return {Kind::http, host->empty() ? field : *host};
}

Spoken read_spoken(std::string_view bytes) {
  if (bytes.empty()) return {Kind::more};
  if (static_cast<uint8_t>(bytes[0]) == kHandshake) return read_client_hello(bytes);
  return read_http_head(bytes);
}

}  // namespace osb::egress
