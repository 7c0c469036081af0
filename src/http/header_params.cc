#include "http/header_params.h"

#include "base/strings.h"
#include "http/head_parse.h"

namespace osb::http {
namespace {

std::unexpected<Error> bad(std::string what) { return fail(Code::invalid_argument, std::move(what)); }

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\t')) text.remove_prefix(1);
}

// What stands between the quotes; `text` starts after the opening one. Browsers leave a backslash in a file
// name alone, others escape it: so it is an escape only where the next character needs one.
Result<std::string> take_quoted(std::string_view& text) {
  std::string out;
  while (!text.empty() && text[0] != '"') {
    if (text.size() > 1 && text[0] == '\\' && (text[1] == '"' || text[1] == '\\')) text.remove_prefix(1);
    out.push_back(text[0]);
    text.remove_prefix(1);
  }
  if (text.empty()) return bad("a quote is not closed");
  text.remove_prefix(1);
  skip_blanks(text);
  if (!text.empty() && text[0] != ';') return bad("text follows a quoted value");
  return out;
}

Result<std::string> take_bare(std::string_view& text) {
  std::string_view value = text.substr(0, text.find(';'));
  text.remove_prefix(value.size());
  value = trim(value);
  if (value.empty()) return bad("a parameter has no value");
  if (value.contains('"')) return bad("a quote inside a bare value");
  return std::string(value);
}

}  // namespace

const std::string* ParameterValue::find(std::string_view name) const {
  for (const auto& [key, value] : params) {
    if (key == name) return &value;
  }
  return nullptr;
}

Result<ParameterValue> parse_parameters(std::string_view text) {
  if (!is_field_value(text)) return bad("a control character in a header value");
  ParameterValue out;
  std::string_view word = text.substr(0, text.find(';'));
  text.remove_prefix(word.size());
  out.word = to_lower(trim(word));
  while (!text.empty()) {
    text.remove_prefix(1);  // the semicolon
    skip_blanks(text);
    if (text.empty() || text[0] == ';') continue;
    size_t equals = text.find('=');
    if (equals == text.npos) return bad("a parameter without '='");
    std::string name = to_lower(trim(text.substr(0, equals)));
    if (!is_token(name)) return bad("a parameter's name is not a word");
    if (out.find(name) != nullptr) return bad("parameter " + name + " is given twice");
    text.remove_prefix(equals + 1);
    skip_blanks(text);
    bool quoted = !text.empty() && text[0] == '"';
    if (quoted) text.remove_prefix(1);
    std::string value = TRY(quoted ? take_quoted(text) : take_bare(text));
    out.params.emplace_back(std::move(name), std::move(value));
  }
  return out;
}

Result<std::string> decode_extended(std::string_view value) {
  size_t first = value.find('\'');
  size_t second = first == value.npos ? first : value.find('\'', first + 1);
  if (second == value.npos) return bad("an extended value needs a character set and two quotes");
  std::string_view charset = value.substr(0, first);
  auto bytes = percent_decode(value.substr(second + 1), Plus::literal);
  if (!bytes) return bad("a broken escape in an extended value");
  if (iequals(charset, "utf-8")) return *bytes;
  if (!iequals(charset, "iso-8859-1")) return bad("the character set of an extended value is not utf-8");
  std::string out;
  for (unsigned char c : *bytes) {
    if (c < 0x80) {
      out.push_back(static_cast<char>(c));
    } else {
      out.push_back(static_cast<char>(0xC0 | c >> 6));
      out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
    }
  }
  return out;
}

}  // namespace osb::http
