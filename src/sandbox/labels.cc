#include "sandbox/labels.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "sandbox/failures.h"

namespace osb::sandbox {
namespace {

bool is_lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) { return is_lower_alnum(c) || (c >= 'A' && c <= 'Z'); }

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > 63 || !is_alnum(text.front()) || !is_alnum(text.back())) return false;
  for (char c : text) {
    if (!is_alnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return true;
}

bool is_dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  for (std::string_view label : split(text, '.')) {
    if (label.empty() || !is_lower_alnum(label.front()) || !is_lower_alnum(label.back())) return false;
    for (char c : label) {
      if (!is_lower_alnum(c) && c != '-') return false;
    }
  }
  return true;
}

}  // namespace

Outcome<> check_label(std::string_view key, std::string_view value) {
  std::string_view name = key;
  if (size_t slash = key.find('/'); slash != key.npos) {
    name = key.substr(slash + 1);
    if (!is_dns_subdomain(key.substr(0, slash))) {
      return refuse(invalid_label(
          key, "what is before the '/' must be a lower-case DNS name of at most 253 characters"));
    }
  }
  if (!is_name(name)) {
    return refuse(invalid_label(
        key,
        "a key is 1 to 63 letters, digits, '-', '_' or '.', and starts and ends with a letter or "
        "digit; a DNS prefix and a '/' may come before it"));
  }
  if (!value.empty() && !is_name(value)) {
    return refuse(invalid_label(
        key,
        "a value is at most 63 letters, digits, '-', '_' or '.', and starts and ends with a letter "
        "or digit; it may be empty"));
  }
  return {};
}

Outcome<> check_metadata(const Metadata& metadata) {
  if (metadata.size() > kMaxLabels) {
    return refuse(invalid_label("", fmt::format("at most {} entries are allowed", kMaxLabels)));
  }
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(kReservedPrefix)) {
      return refuse(invalid_label(key, fmt::format("keys that start with {} are reserved", kReservedPrefix)));
    }
    TRY(check_label(key, value));
  }
  return {};
}

Outcome<Metadata> apply_patch(Metadata metadata, const MetadataPatch& patch) {
  for (const auto& [key, text] : patch) {
    if (text) {
      metadata.insert_or_assign(key, *text);
    } else {
      metadata.erase(key);
    }
  }
  TRY(check_metadata(metadata));
  return metadata;
}

}  // namespace osb::sandbox
