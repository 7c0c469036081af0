#pragma once

// JSON from outside, decoded with paths.
//
// parse() is bounded (depth; the caller bounds the size). A Field is "the value at this path, if any": asking
// it for a type it does not have records an Issue with the path and returns nothing, so that one pass over a
// document collects every mistake in it. An explicit null is the same as an absent member, everywhere.
//
//   json::Issues issues;
//   json::Field body = json::Field::root(value, issues, "body");
//   auto timeout = body["timeout"].integer();        // optional<int64_t>; "300" and 300.0 count as 300
//   auto uri = body["image"]["uri"].required_string();
//   if (!issues.empty()) return bad_request(issues);

#include <boost/json/value.hpp>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"

namespace osb::json {

namespace bj = boost::json;

inline constexpr size_t kMaxDepth = 32;

// Code::invalid_argument with the byte position in the message. Trailing bytes after the value are an error.
Result<bj::value> parse(std::string_view text);

// Only the first value counts, what follows it is ignored (execd's rule for request bodies).
Result<bj::value> parse_first(std::string_view text);

// Compact; UTF-8 stays as it is, and what is not UTF-8 becomes U+FFFD. A number that JSON does not have
// (infinity, NaN) is printed as null, every other one so that it reads back as the same.
std::string print(const bj::value& value);

using PathStep = std::variant<std::string, int64_t>;
using Path = std::vector<PathStep>;
// body.volumes[2].mountPath; a name that is no plain word is quoted: body.metadata["a.b"]
std::string to_string(const Path& path);

struct Issue {
  std::string type;  // a word clients may match: missing, string_type, int_parsing, greater_than_equal,
                     // value_error, ...
  Path path;
  std::string message;
};

// Collects at most kMax issues; more are counted only. The same issue twice counts once.
class Issues {
 public:
  static constexpr size_t kMax = 64;
  void add(Issue issue);
  bool empty() const { return count_ == 0; }
  const std::vector<Issue>& list() const { return list_; }

 private:
  std::vector<Issue> list_;
  size_t count_ = 0;
};

// What counts as the type that was asked for. Lenient, as the lifecycle API reads: "300" and 300.0 are
// integers, "yes" is a boolean. Exact, as the execution API does: a number is a number, true is true, and the
// names of members match in any case.
enum class Reading { lenient, exact };

// A value, or the place where one could have been. Cheap to copy; borrows the document and the Issues.
class Field {
 public:
  static Field root(const bj::value& value, Issues& issues, std::string_view name,
                    Reading reading = Reading::lenient);

  bool present() const { return value_ != nullptr; }  // false for null
  const bj::value* raw() const { return value_; }
  const Path& path() const { return path_; }

  // A member. On a value that is no object this records one issue (model_attributes_type) and gives an absent
  // field about which nothing more is recorded.
  Field operator[](std::string_view name) const;
  // A member that may come under several names; the path shows the first.
  Field any_of(std::initializer_list<std::string_view> names) const;

  // Absent gives nothing and no issue; a wrong type gives nothing and an issue.
  std::optional<std::string> string() const;
  // Lenient: also integral floats, decimal strings; 0/1, true/false/yes/no/on/off/t/f/y/n in any case.
  std::optional<int64_t> integer() const;
  std::optional<bool> boolean() const;
  std::optional<std::vector<Field>> array() const;
  std::optional<std::map<std::string, Field>> object() const;
  std::optional<std::map<std::string, std::string>> string_map() const;  // null values are issues
  std::optional<std::vector<std::string>> string_list() const;           // null elements are issues

  // Absent is an issue of type "missing".
  std::string required_string() const;
  int64_t required_integer() const;

  void complain(std::string type, std::string message) const;

 private:
  Field child(PathStep step, const bj::value* value) const;
  const bj::object* members() const;
  const bj::value* find_member(const bj::object& object, std::string_view name) const;
  std::optional<std::string> element_string() const;

  const bj::value* value_ = nullptr;
  Issues* issues_ = nullptr;  // null below a value whose type is already an issue
  Path path_;
  Reading reading_ = Reading::lenient;
};

}  // namespace osb::json
