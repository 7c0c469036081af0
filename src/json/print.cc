#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "json/decode.h"
#include "json/escape.h"

namespace osb::json {
namespace {

// The shortest of 15 to 17 digits that gives the number back; with a mark of a fraction, so that it stays a
// float. (Boost's own printer writes 12.5 as 1.25E1, and infinity as something that is no JSON. to_chars
// would put 150 KB of tables into execd.)
void append_double(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out.append("null");
    return;
  }
  char text[40];
  for (int digits = 15; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, number);
    if (std::strtod(text, nullptr) == number) break;
  }
  std::string_view printed = text;
  out.append(printed);
  if (printed.find_first_of(".e") == printed.npos) out.append(".0");
}

void append_value(std::string& out, const bj::value& value) {
  switch (value.kind()) {
    case bj::kind::null:
      out.append("null");
      break;
    case bj::kind::bool_:
      out.append(value.get_bool() ? "true" : "false");
      break;
    case bj::kind::int64:
      out.append(std::to_string(value.get_int64()));
      break;
    case bj::kind::uint64:
      out.append(std::to_string(value.get_uint64()));
      break;
    case bj::kind::double_:
      append_double(out, value.get_double());
      break;
    case bj::kind::string:
      append_minimal_string(out, value.get_string());
      break;
    case bj::kind::array: {
      out.push_back('[');
      bool first = true;
      for (const bj::value& element : value.get_array()) {
        if (!std::exchange(first, false)) out.push_back(',');
        append_value(out, element);
      }
      out.push_back(']');
      break;
    }
    case bj::kind::object: {
      out.push_back('{');
      bool first = true;
      for (const auto& member : value.get_object()) {
        if (!std::exchange(first, false)) out.push_back(',');
        append_minimal_string(out, member.key());
        out.push_back(':');
        append_value(out, member.value());
      }
      out.push_back('}');
      break;
    }
  }
}

}  // namespace

std::string print(const bj::value& value) {
  std::string out;
  append_value(out, value);
  return out;
}

}  // namespace osb::json
