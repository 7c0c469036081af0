#include "cli/client_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include "base/strings.h"
#include "server/toml.h"

namespace osb::cli {
namespace {

// What of a document is where, line by line: enough to change one value and nothing else.
struct Lines {
  std::vector<std::string> lines;

  explicit Lines(std::string_view text) {
    while (!text.empty()) {
      size_t end = std::min(text.find('\n'), text.size());
      lines.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  std::string text() const {
    std::string out;
    for (const std::string& line : lines) out += line + "\n";
    return out;
  }
};

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

bool is_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  size_t digits = 0, dots = 0;
  for (char c : text) (c == '.' ? dots : digits) += (c == '.' || (c >= '0' && c <= '9')) ? 1 : 100;
  if (digits == 0 || digits > 18 || dots > 1 || text.starts_with('.') || text.ends_with('.')) return false;
  return text.size() == 1 || text[0] != '0' || text[1] == '.';
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04x}", byte);
    else
      out.push_back(c);
  }
  return out + "\"";
}

std::string literal(std::string_view value) {
  if (iequals(value, "true") || iequals(value, "false")) return to_lower(value);
  return is_number(value) ? std::string(value) : quoted(value);
}

template <class T>
Result<void> read(const toml::table& root, const char* key, const std::string& path, T& into) {
  auto node = root.at_path(key);
  if (!node) return {};
  if constexpr (std::is_same_v<T, bool>) {
    if (auto value = node.value_exact<bool>()) return into = *value, Result<void>{};
    return fail(Code::invalid_argument, fmt::format("{}: {} must be true or false", path, key));
  } else if constexpr (std::is_same_v<T, int64_t>) {
    if (auto value = node.value_exact<int64_t>(); value && *value > 0) return into = *value, Result<void>{};
    return fail(Code::invalid_argument, fmt::format("{}: {} must be a number of seconds", path, key));
  } else {
    if (auto value = node.value_exact<std::string>()) return into = *value, Result<void>{};
    // `config set` makes numbers of what looks like them: a timeout of 600, a key of digits
    if (auto value = node.value_exact<int64_t>()) return into = std::to_string(*value), Result<void>{};
    return fail(Code::invalid_argument, fmt::format("{}: {} must be a text", path, key));
  }
}

}  // namespace

const std::string_view kInitialClientConfig = R"(# OpenSandbox client configuration
# What counts, first to last: flags, environment variables, this file, defaults.

[connection]
# api_key = "your-api-key"
# domain = "localhost:8080"
# protocol = "http"
# request_timeout = 30
# use_server_proxy = false

[output]
# color = true

[defaults]
# image = "python:3.12"
# timeout = "10m"  # "none": until it is removed
)";

std::string default_client_config() {
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.opensandbox/config.toml" : "";
}

Result<void> read_client_config(std::string_view text, const std::string& path, ClientSettings& into) {
  toml::parse_result parsed = toml::parse(text);
  if (!parsed)
    return fail(Code::invalid_argument,
                fmt::format("{}:{}: not valid TOML", path, parsed.error().source().begin.line));
  const toml::table& root = parsed.table();
  TRY(read(root, "connection.api_key", path, into.api_key));
  TRY(read(root, "connection.domain", path, into.domain));
  TRY(read(root, "connection.protocol", path, into.protocol));
  TRY(read(root, "connection.request_timeout", path, into.request_timeout));
  TRY(read(root, "connection.use_server_proxy", path, into.use_server_proxy));
  TRY(read(root, "output.color", path, into.color));
  std::string image, timeout;
  TRY(read(root, "defaults.image", path, image));
  TRY(read(root, "defaults.timeout", path, timeout));
  if (!image.empty()) into.default_image = image;
  if (!timeout.empty()) into.default_timeout = timeout;
  return {};
}

Result<std::string> set_in_client_config(std::string_view text, std::string_view key,
                                         std::string_view value) {
  size_t dot = key.find('.');
  std::string_view section = key.substr(0, dot), field = dot == key.npos ? "" : key.substr(dot + 1);
  if (!is_word(section) || !is_word(field))
    return fail(Code::invalid_argument, "a key is section.field, as in connection.domain");
  if (!toml::parse(text))
    return fail(Code::invalid_argument, "the file is not valid TOML; mend or remove it first");
  Lines all(text);
  std::string line = fmt::format("{} = {}", field, literal(value)), head = fmt::format("[{}]", section);
  auto& lines = all.lines;
  auto begin = std::ranges::find_if(lines, [&](const std::string& one) { return trim(one) == head; });
  if (begin == lines.end()) {
    if (!lines.empty() && !trim(lines.back()).empty()) lines.emplace_back();
    lines.push_back(head);
    lines.push_back(line);
  } else {
    auto end = std::find_if(begin + 1, lines.end(),
                            [](const std::string& one) { return trim(one).starts_with('['); });
    auto at = std::find_if(begin + 1, end, [&](const std::string& one) {
      size_t equals = one.find('=');
      return equals != one.npos && trim(std::string_view(one).substr(0, equals)) == field;
    });
    if (at != end) {
      *at = line;
    } else {
      while (end != begin + 1 && trim(*(end - 1)).empty()) --end;
      lines.insert(end, line);
    }
  }
  std::string out = all.text();
  // A value over several lines is not to be found like this.
  if (!toml::parse(out))
    return fail(Code::invalid_argument, "the file is too elaborate to be changed here; edit it");
  return out;
}

}  // namespace osb::cli
