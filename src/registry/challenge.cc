#include "registry/challenge.h"

#include "base/strings.h"
#include "http/head_parse.h"

namespace osb::registry {
namespace {

constexpr size_t kMaxField = 8 * 1024;
constexpr size_t kMaxChallenges = 8;
constexpr size_t kMaxParams = 32;

std::unexpected<Error> refuse(std::string_view why) {
  return fail(Code::corrupt, "WWW-Authenticate: " + std::string(why));
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  void skip_separators() {
    while (peek() == ' ' || peek() == '\t' || peek() == ',') ++at_;
  }
  bool take(char c) {
    if (peek() != c || done()) return false;
    ++at_;
    return true;
  }
  std::string_view token() {
    size_t start = at_;
    while (!done() && http::is_token(text_.substr(at_, 1))) ++at_;
    return text_.substr(start, at_ - start);
  }
  Result<std::string> value() {
    if (!take('"')) {
      std::string_view bare = token();
      if (bare.empty()) return refuse("a parameter without a value");
      return std::string(bare);
    }
    std::string out;
    while (!done()) {
      char c = text_[at_++];
      if (c == '"') return out;
      if (c == '\\') {
        if (done()) break;
        c = text_[at_++];
      }
      out.push_back(c);
    }
    return refuse("a quote that does not end");
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string_view Challenge::get(const std::string& name) const {
  auto found = params.find(name);
  return found == params.end() ? std::string_view() : std::string_view(found->second);
}

Result<std::vector<Challenge>> parse_challenges(std::string_view field) {
  if (field.size() > kMaxField) return refuse("longer than 8 KiB");
  if (!http::is_field_value(field)) return refuse("control characters");
  std::vector<Challenge> out;
  Reader in(field);
  for (in.skip_separators(); !in.done(); in.skip_separators()) {
    std::string word = to_lower(in.token());
    if (word.empty()) return refuse("a character that starts no word");
    in.skip_blanks();
    if (!in.take('=')) {
      if (out.size() == kMaxChallenges) return refuse("more than 8 challenges");
      out.push_back({.scheme = std::move(word), .params = {}});
      continue;
    }
    in.skip_blanks();
    std::string value = TRY(in.value());
    if (out.empty()) return refuse("a parameter before any scheme");
    if (out.back().params.size() == kMaxParams) return refuse("more than 32 parameters");
    out.back().params.emplace(std::move(word), std::move(value));
  }
  return out;
}

}  // namespace osb::registry
