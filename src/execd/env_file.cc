#include "execd/env_file.h"

#include <optional>

#include "base/fd.h"
#include "base/log.h"
#include "base/strings.h"

namespace osb::execd {
namespace {

struct Quoted {
  std::string value;
  size_t length = 0;  // both quotes included
};

std::optional<Quoted> parse_single(std::string_view text) {
  size_t close = text.find('\'', 1);
  if (close == text.npos) return std::nullopt;
  return Quoted{std::string(text.substr(1, close - 1)), close + 1};
}

std::optional<Quoted> parse_double(std::string_view text, const Environment& base) {
  static constexpr std::string_view kLetters = "\\\"nrt$", kMeanings = "\\\"\n\r\t$";
  // Escaped dollars must survive the expansion: pieces between them are expanded one by one.
  std::string value, piece;
  auto expand_piece = [&] {
    value += *expand_variables(piece, base, Undefined::keep);
    piece.clear();
  };
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      expand_piece();
      return Quoted{std::move(value), i + 1};
    }
    size_t meaning = text[i] == '\\' && i + 1 < text.size() ? kLetters.find(text[i + 1]) : kLetters.npos;
    if (meaning == kLetters.npos) {
      piece.push_back(text[i]);
      continue;
    }
    ++i;
    expand_piece();
    value.push_back(kMeanings[meaning]);
  }
  return std::nullopt;
}

// Whether nothing but blanks or a comment follows up to the end of the line.
bool only_blank_follows(std::string_view text) {
  std::string_view rest = trim(text.substr(0, text.find('\n')));
  return rest.empty() || rest.front() == '#';
}

bool valid_key(std::string_view key) {
  return !key.empty() && key.find_first_of(" \t\r\n\"'") == key.npos && key.find('\0') == key.npos;
}

}  // namespace

std::map<std::string, std::string> parse_env_file(std::string_view text, const Environment& base) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    size_t line_end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, line_end);
    std::string_view rest = text;
    text.remove_prefix(std::min(line_end + 1, text.size()));

    std::string_view body = trim(line);
    size_t equals = body.find('=');
    if (body.empty() || body.front() == '#' || equals == body.npos) continue;
    std::string_view key = trim(body.substr(0, equals));
    if (key.starts_with("export ") || key.starts_with("export\t")) key = trim(key.substr(7));
    if (!valid_key(key)) continue;

    // The value in the whole remaining text, because a quoted one may run over the end of the line.
    rest.remove_prefix(line.find('=') + 1);
    std::optional<Quoted> quoted;
    if (rest.starts_with('\'')) quoted = parse_single(rest);
    if (rest.starts_with('"')) quoted = parse_double(rest, base);
    std::string value;
    if (quoted && only_blank_follows(rest.substr(quoted->length))) {
      value = std::move(quoted->value);
      rest.remove_prefix(quoted->length);
      rest.remove_prefix(std::min(std::min(rest.find('\n'), rest.size()) + 1, rest.size()));
      text = rest;
    } else {
      value = *expand_variables(trim(body.substr(equals + 1)), base, Undefined::empty);
    }
    if (value.find('\0') == value.npos) out[std::string(key)] = std::move(value);
  }
  return out;
}

std::map<std::string, std::string> read_env_file(const std::string& path, const Environment& base) {
  static std::string last_problem;
  if (path.empty()) return {};
  auto text = read_file(path, kMaxEnvFileBytes);
  if (text) {
    last_problem.clear();
    return parse_env_file(*text, base);
  }
  // Most sandboxes never have one.
  if (text.error().sys_errno != ENOENT && last_problem != text.error().message) {
    last_problem = text.error().message;
    log::warn("environment file not read", {{"reason", last_problem}});
  }
  return {};
}

}  // namespace osb::execd
