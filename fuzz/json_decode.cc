// What parses prints, and parses back to the same; a Field answers any question about any document.
#include "json/decode.h"

#include <cmath>

#include "check.h"

using namespace osb;
using json::bj::value;

namespace {

// Equal up to what Boost's parser of floats rounds away, and to infinity, which is printed as null.
bool same(const value& a, const value& b) {
  if (a.is_double()) {
    double x = a.get_double();
    if (!std::isfinite(x)) return b.is_null();
    if (!b.is_double()) return false;
    return std::abs(x - b.get_double()) <= std::abs(x) * 1e-14 + 1e-320 || std::isinf(b.get_double());
  }
  if (a.kind() != b.kind()) return false;
  if (a.is_array()) {
    if (a.get_array().size() != b.get_array().size()) return false;
    for (size_t i = 0; i < a.get_array().size(); ++i) {
      if (!same(a.get_array()[i], b.get_array()[i])) return false;
    }
    return true;
  }
  if (a.is_object()) {
    if (a.get_object().size() != b.get_object().size()) return false;
    for (const auto& member : a.get_object()) {
      const value* other = b.get_object().if_contains(member.key());
      if (other == nullptr || !same(member.value(), *other)) return false;
    }
    return true;
  }
  return a == b;
}

size_t depth(const value& v) {
  size_t below = 0;
  if (const auto* array = v.if_array()) {
    for (const value& element : *array) below = std::max(below, depth(element));
    return below + 1;
  }
  if (const auto* object = v.if_object()) {
    for (const auto& member : *object) below = std::max(below, depth(member.value()));
    return below + 1;
  }
  return 0;
}

// Asks everything, everywhere; counts the questions that must have been answered or complained about.
void ask(const json::Field& field, const json::Issues& issues) {
  auto text = field.string();
  auto number = field.integer();
  auto truth = field.boolean();
  auto map = field.string_map();
  auto list = field.string_list();
  CHECK(field.present() || !(text || number || truth || map || list));
  if (field.present() && !(text && number && truth && map && list)) CHECK(!issues.empty());
  CHECK(field["timeout"].path().size() == field.path().size() + 1);
  CHECK(field.any_of({"aB", "a_b"}).path().back() == json::PathStep("aB"));
  CHECK(!json::to_string(field.path()).contains('\n'));
  if (auto elements = field.array()) {
    for (const json::Field& element : *elements) ask(element, issues);
  }
  if (auto members = field.object()) {
    for (const auto& [name, member] : *members) ask(member, issues);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  auto parsed = json::parse(text);
  auto first = json::parse_first(text);
  if (!parsed) {
    CHECK(parsed.error().code == Code::invalid_argument);
    if (!first) return 0;
  }
  CHECK(first);
  if (parsed) CHECK(*parsed == *first || json::print(*parsed) == json::print(*first));

  CHECK(depth(*first) <= json::kMaxDepth);
  std::string printed = json::print(*first);
  auto again = json::parse(printed);
  CHECK(again && same(*first, *again));

  json::Issues issues;
  ask(json::Field::root(*first, issues, "body"), issues);
  CHECK(issues.list().size() <= json::Issues::kMax);
  for (const json::Issue& issue : issues.list()) CHECK(!issue.type.empty() && !issue.message.empty());
  return 0;
}
