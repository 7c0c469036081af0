#pragma once

// HTTP/1.1 messages as values: header fields in order (repeated ones stay repeated), request and response
// heads, queries.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::http {

struct HeaderField {
  std::string name, value;
};

class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<HeaderField> fields) : fields_(fields) {}

  const std::string* find(std::string_view name) const;  // the first, or null
  std::string_view get(std::string_view name) const;     // the first, or ""
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  void add(std::string name, std::string value) { fields_.push_back({std::move(name), std::move(value)}); }
  void set(std::string_view name, std::string value);  // replaces all of that name
  void remove(std::string_view name);
  void remove_if(bool (*unwanted)(std::string_view name));
  void reserve(size_t count) { fields_.reserve(count); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  size_t size() const { return fields_.size(); }

 private:
  std::vector<HeaderField> fields_;
};

struct RequestHead {
  std::string method;  // as sent, upper case by convention
  std::string target;  // raw: path?query, never decoded
  bool http_1_1 = true;
  Headers headers{};

  std::string_view path() const;   // raw path, leading slashes collapsed to one
  std::string_view query() const;  // raw, without '?'
};

struct ResponseHead {
  int status = 200;
  Headers headers{};
};

// A decoded query string ('+' is a space). Broken escapes stay as they are.
class Query {
 public:
  explicit Query(std::string_view raw);
  std::optional<std::string> get(std::string_view name) const;  // the last of that name
  std::vector<std::string> all(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& pairs() const { return pairs_; }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

std::string_view reason_phrase(int status);

}  // namespace osb::http
