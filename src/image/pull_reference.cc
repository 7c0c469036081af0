#include "image/pull_reference.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/strings.h"
#include "image/digest.h"

namespace osb::image {
namespace {

constexpr size_t kMaxAsked = 512;
constexpr size_t kMaxTag = 128;

bool is_lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) { return is_lower_alnum(c) || (c >= 'A' && c <= 'Z'); }

bool is_tag(std::string_view tag) {
  auto fine = [](char c) { return is_alnum(c) || c == '_' || c == '.' || c == '-'; };
  return !tag.empty() && tag.size() <= kMaxTag && tag[0] != '.' && tag[0] != '-' &&
         std::ranges::all_of(tag, fine);
}

bool is_repository(std::string_view repository) {
  auto fine = [](char c) { return is_lower_alnum(c) || c == '_' || c == '.' || c == '-'; };
  for (std::string_view part : split(repository, '/')) {
    if (part.empty() || !is_lower_alnum(part.front()) || !is_lower_alnum(part.back()) ||
        !std::ranges::all_of(part, fine) || part.find("..") != part.npos)
      return false;
  }
  return true;
}

// The first component of "registry.example:5000/a/b" is a host, that of "a/b" is not.
bool looks_like_host(std::string_view component) {
  return component == "localhost" || component.find_first_of(".:") != component.npos;
}

// "[::1]". In one spelling only: a registry has one name.
bool is_bracketed_address(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']')) return false;
  std::string address = to_lower(text.substr(1, text.size() - 2));
  in6_addr parsed{};
  char spelt[INET6_ADDRSTRLEN];
  return ::inet_pton(AF_INET6, address.c_str(), &parsed) == 1 &&
         ::inet_ntop(AF_INET6, &parsed, spelt, sizeof spelt) && address == spelt;
}

std::unexpected<Error> refuse(std::string_view asked, std::string_view why) {
  return fail(Code::invalid_argument, "image " + std::string(asked.substr(0, 300)) + ": " + std::string(why));
}

}  // namespace

bool is_registry_host(std::string_view text) {
  size_t bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == text.npos) return false;
  size_t colon = text.find(':', bracket);
  std::string_view host = text.substr(0, colon);
  if (colon != text.npos) {
    auto port = parse_number<uint16_t>(text.substr(colon + 1));
    if (!port || *port == 0) return false;
  }
  if (host.starts_with('[')) return is_bracketed_address(host);
  auto fine = [](char c) { return is_alnum(c) || c == '.' || c == '-'; };
  return !host.empty() && host.size() <= 253 && is_alnum(host.front()) && is_alnum(host.back()) &&
         std::ranges::all_of(host, fine) && host.find("..") == host.npos;
}

std::string PullReference::name() const {
  std::string out = registry + "/" + repository;
  if (!tag.empty()) out += ":" + tag;
  if (!digest.empty()) out += "@sha256:" + digest;
  return out;
}

Result<PullReference> parse_pull_reference(std::string_view asked, std::string_view default_registry) {
  PullReference out;
  if (asked.empty() || asked.size() > kMaxAsked) return refuse(asked, "a name has 1 to 512 characters");
  std::string_view rest = asked;
  if (size_t at = rest.find('@'); at != rest.npos) {
    auto digest = parse_digest(rest.substr(at + 1));
    if (!digest) return refuse(asked, "behind the @ stands no sha256 digest");
    out.digest = std::move(*digest);
    rest = rest.substr(0, at);
  }
  size_t slash = rest.rfind('/'), colon = rest.rfind(':');
  if (colon != rest.npos && (slash == rest.npos || colon > slash)) {
    out.tag = rest.substr(colon + 1);
    if (!is_tag(out.tag)) return refuse(asked, "the tag has letters, digits and _ . - only");
    rest = rest.substr(0, colon);
  }
  if (out.tag.empty() && out.digest.empty()) out.tag = "latest";
  size_t first = rest.find('/');
  if (first != rest.npos && looks_like_host(rest.substr(0, first))) {
    out.registry = to_lower(rest.substr(0, first));
    rest = rest.substr(first + 1);
  } else {
    out.registry = default_registry;
  }
  if (out.registry == "index.docker.io") out.registry = kDockerHub;
  if (!is_registry_host(out.registry)) return refuse(asked, "the name of the registry is no host name");
  out.repository = rest;
  if (out.registry == kDockerHub && out.repository.find('/') == out.repository.npos)
    out.repository.insert(0, "library/");
  if (!is_repository(out.repository)) {
    return refuse(asked,
                  "a name in a registry has parts of lower-case letters, digits and . _ - , with / between");
  }
  if (out.name().size() > 255) return refuse(asked, "the name is longer than 255 characters");
  return out;
}

}  // namespace osb::image
