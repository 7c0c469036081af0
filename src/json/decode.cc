#include "json/decode.h"

#include <boost/json/parser.hpp>
#include <cmath>

#include "base/strings.h"
#include "json/escape.h"

namespace osb::json {
namespace {

enum class Rest { refused, ignored };

Result<bj::value> parse_bounded(std::string_view text, Rest rest) {
  bj::parse_options options;
  options.max_depth = kMaxDepth;
  unsigned char scratch[4096];  // saves the allocation of the parser's stack for most documents
  bj::parser parser({}, options, scratch, sizeof scratch);
  boost::system::error_code error;
  size_t used = parser.write_some(text.data(), text.size(), error);
  if (!error && used < text.size() && rest == Rest::refused) error = bj::error::extra_data;
  if (error) return fail(Code::invalid_argument, error.message() + " at byte " + std::to_string(used));
  return parser.release();
}

bool plain_name(std::string_view name) {
  for (char c : name) {
    bool word =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
    if (!word) return false;
  }
  return !name.empty();
}

enum class Whole { yes, no, too_big };

// A number as an integer, when it is one.
Whole from_number(const bj::value& value, int64_t& out) {
  if (!value.is_double()) {
    boost::system::error_code error;
    out = value.to_number<int64_t>(error);
    return error ? Whole::too_big : Whole::yes;
  }
  double number = value.get_double();
  if (std::isnan(number) || (std::isfinite(number) && std::trunc(number) != number)) return Whole::no;
  if (!(number >= -0x1p63 && number < 0x1p63)) return Whole::too_big;
  out = static_cast<int64_t>(number);
  return Whole::yes;
}

// "300", " +300 " and "300.0" as a number.
Whole from_text(std::string_view text, int64_t& out) {
  text = trim(text);
  if (size_t dot = text.find('.'); dot != text.npos) {
    std::string_view fraction = text.substr(dot + 1);
    if (fraction.empty() || fraction.find_first_not_of('0') != fraction.npos) return Whole::no;
    text = text.substr(0, dot);
  }
  std::string_view digits = text;
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return Whole::no;
  auto number = parse_number<int64_t>(text.starts_with('+') ? digits : text);
  if (!number) return Whole::too_big;
  out = *number;
  return Whole::yes;
}

std::optional<bool> boolean_word(std::string_view text) {
  for (std::string_view word : {"true", "1", "yes", "on", "t", "y"}) {
    if (iequals(text, word)) return true;
  }
  for (std::string_view word : {"false", "0", "no", "off", "f", "n"}) {
    if (iequals(text, word)) return false;
  }
  return std::nullopt;
}

}  // namespace

Result<bj::value> parse(std::string_view text) { return parse_bounded(text, Rest::refused); }

Result<bj::value> parse_first(std::string_view text) { return parse_bounded(text, Rest::ignored); }

std::string to_string(const Path& path) {
  std::string out;
  for (const PathStep& step : path) {
    if (const int64_t* index = std::get_if<int64_t>(&step)) {
      out.append("[").append(std::to_string(*index)).append("]");
    } else if (const std::string& name = std::get<std::string>(step); plain_name(name)) {
      if (!out.empty()) out.push_back('.');
      out.append(name);
    } else {  // a name from outside must not be able to look like a path
      out.push_back('[');
      append_string(out, name);
      out.push_back(']');
    }
  }
  return out;
}

void Issues::add(Issue issue) {
  for (const Issue& known : list_) {
    if (known.type == issue.type && known.path == issue.path && known.message == issue.message) return;
  }
  ++count_;
  if (list_.size() < kMax) list_.push_back(std::move(issue));
}

Field Field::root(const bj::value& value, Issues& issues, std::string_view name, Reading reading) {
  Field field;
  field.reading_ = reading;
  field.issues_ = &issues;
  field.value_ = value.is_null() ? nullptr : &value;
  if (!name.empty()) field.path_.emplace_back(std::string(name));
  return field;
}

Field Field::child(PathStep step, const bj::value* value) const {
  Field field = *this;
  field.value_ = value == nullptr || value->is_null() ? nullptr : value;
  field.path_.push_back(std::move(step));
  return field;
}

const bj::object* Field::members() const {
  if (!present()) return nullptr;
  if (!value_->is_object()) complain("model_attributes_type", "must be an object");
  return value_->if_object();
}

Field Field::operator[](std::string_view name) const { return any_of({name}); }

const bj::value* Field::find_member(const bj::object& object, std::string_view name) const {
  const bj::value* found = object.if_contains(name);
  if (found != nullptr || reading_ == Reading::lenient) return found;
  for (const auto& member : object) {
    if (iequals(member.key(), name)) found = &member.value();  // as with equal names, the last one counts
  }
  return found;
}

Field Field::any_of(std::initializer_list<std::string_view> names) const {
  const bj::object* object = members();
  const bj::value* found = nullptr;
  for (std::string_view name : names) {
    if (object == nullptr || (found != nullptr && !found->is_null())) break;
    found = find_member(*object, name);
  }
  Field field = child(std::string(*names.begin()), found);
  // The mistake is that this is no object; that it also lacks members is no second one.
  if (present() && object == nullptr) field.issues_ = nullptr;
  return field;
}

std::optional<std::string> Field::string() const {
  if (!present()) return std::nullopt;
  if (const bj::string* text = value_->if_string()) return std::string(*text);
  complain("string_type", "must be a string");
  return std::nullopt;
}

std::optional<int64_t> Field::integer() const {
  if (!present()) return std::nullopt;
  int64_t number = 0;
  if (reading_ == Reading::exact && (value_->is_string() || value_->is_double())) {
    complain("int_type", "must be an integer");
  } else if (const bj::string* text = value_->if_string()) {
    switch (from_text(*text, number)) {
      case Whole::yes:
        return number;
      case Whole::no:
        complain("int_parsing", "must be an integer; this text is not one");
        break;
      case Whole::too_big:
        complain("int_parsing_size", "must be an integer of at most 64 bits");
        break;
    }
  } else if (value_->is_number()) {
    switch (from_number(*value_, number)) {
      case Whole::yes:
        return number;
      case Whole::no:
        complain("int_from_float", "must be an integer; this number has a fraction");
        break;
      case Whole::too_big:
        complain("int_parsing_size", "must be an integer of at most 64 bits");
        break;
    }
  } else {
    complain("int_type", "must be an integer");
  }
  return std::nullopt;
}

std::optional<bool> Field::boolean() const {
  if (!present()) return std::nullopt;
  if (const bool* value = value_->if_bool()) return *value;
  if (reading_ == Reading::exact) {
    complain("bool_type", "must be true or false");
  } else if (const bj::string* text = value_->if_string()) {
    if (auto value = boolean_word(*text)) return value;
    complain("bool_parsing", "must be true or false");
  } else if (value_->is_number()) {
    int64_t number = 0;
    if (from_number(*value_, number) == Whole::yes && (number == 0 || number == 1)) return number == 1;
    complain("bool_parsing", "must be true or false");
  } else {
    complain("bool_type", "must be true or false");
  }
  return std::nullopt;
}

std::optional<std::vector<Field>> Field::array() const {
  if (!present()) return std::nullopt;
  const bj::array* elements = value_->if_array();
  if (elements == nullptr) {
    complain("list_type", "must be an array");
    return std::nullopt;
  }
  std::vector<Field> out;
  out.reserve(elements->size());
  for (const bj::value& element : *elements) out.push_back(child(static_cast<int64_t>(out.size()), &element));
  return out;
}

std::optional<std::map<std::string, Field>> Field::object() const {
  if (!present()) return std::nullopt;
  const bj::object* object = value_->if_object();
  if (object == nullptr) {
    complain("dict_type", "must be an object");
    return std::nullopt;
  }
  std::map<std::string, Field> out;
  for (const auto& member : *object) {
    std::string name(member.key());
    out.emplace(name, child(name, &member.value()));
  }
  return out;
}

// An element that must be there: unlike a member, it cannot be left out, so null is a wrong type.
std::optional<std::string> Field::element_string() const {
  if (!present()) complain("string_type", "must be a string, not null");
  return string();
}

std::optional<std::map<std::string, std::string>> Field::string_map() const {
  auto members = object();
  if (!members) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const auto& [name, field] : *members) {
    if (auto text = field.element_string()) out.emplace(name, std::move(*text));
  }
  if (out.size() != members->size()) return std::nullopt;
  return out;
}

std::optional<std::vector<std::string>> Field::string_list() const {
  auto elements = array();
  if (!elements) return std::nullopt;
  std::vector<std::string> out;
  for (const Field& field : *elements) {
    if (auto text = field.element_string()) out.push_back(std::move(*text));
  }
  if (out.size() != elements->size()) return std::nullopt;
  return out;
}

std::string Field::required_string() const {
  if (!present()) complain("missing", "is required");
  return string().value_or("");
}

int64_t Field::required_integer() const {
  if (!present()) complain("missing", "is required");
  return integer().value_or(0);
}

void Field::complain(std::string type, std::string message) const {
  if (issues_ != nullptr) issues_->add({std::move(type), path_, std::move(message)});
}

}  // namespace osb::json
