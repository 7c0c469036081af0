#include "cli/client_config.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
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

std::string in_quotes(std::string_view text) {
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
  return is_number(value) ? std::string(value) : in_quotes(value);
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

Result<void> read_contexts(const toml::table& root, const std::string& path, ClientSettings& into) {
  const toml::table* all = root["contexts"].as_table();
  if (!all) return {};
  for (const auto& [name, node] : *all) {
    const toml::table* one = node.as_table();
    if (!one) return fail(Code::invalid_argument, fmt::format("{}: contexts.NAME must be a table", path));
    Context context;
    TRY(read(*one, "domain", path, context.domain));
    TRY(read(*one, "protocol", path, context.protocol));
    TRY(read(*one, "api_key", path, context.api_key));
    TRY(read(*one, "ca_file", path, context.tls.authority));
    TRY(read(*one, "client_cert", path, context.tls.certificate));
    TRY(read(*one, "client_key", path, context.tls.key));
    if (context.domain.empty())
      return fail(Code::invalid_argument, fmt::format("{}: a context has no domain", path));
    into.contexts[std::string(name.str())] = std::move(context);
  }
  return {};
}

// The lines of a section: from its head to the next one.
struct Range {
  std::vector<std::string>::iterator begin, end;
};
Range find_section(std::vector<std::string>& lines, std::string_view section) {
  std::string head = fmt::format("[{}]", section);
  auto begin = std::ranges::find_if(lines, [&](const std::string& one) { return trim(one) == head; });
  if (begin == lines.end()) return {begin, begin};
  auto end =
      std::find_if(begin + 1, lines.end(), [](const std::string& one) { return trim(one).starts_with('['); });
  return {begin, end};
}

std::vector<std::string>::iterator find_field(Range section, std::string_view field) {
  return std::find_if(section.begin + 1, section.end, [&](const std::string& one) {
    size_t equals = one.find('=');
    return equals != one.npos && trim(std::string_view(one).substr(0, equals)) == field;
  });
}

void set_line(std::vector<std::string>& lines, std::string_view section, std::string_view field,
              const std::string& written) {
  std::string line = fmt::format("{} = {}", field, written);
  Range there = find_section(lines, section);
  if (there.begin == lines.end()) {
    if (!lines.empty() && !trim(lines.back()).empty()) lines.emplace_back();
    lines.push_back(fmt::format("[{}]", section));
    lines.push_back(line);
    return;
  }
  auto at = find_field(there, field);
  if (at != there.end) {
    *at = line;
  } else {
    while (there.end != there.begin + 1 && trim(*(there.end - 1)).empty()) --there.end;
    lines.insert(there.end, line);
  }
}

Result<void> check_file(std::string_view text) {
  if (toml::parse(text)) return {};
  return fail(Code::invalid_argument, "the file is not valid TOML; mend or remove it first");
}

// A value over several lines is not to be found like this.
Result<std::string> checked(const Lines& lines) {
  std::string out = lines.text();
  if (toml::parse(out)) return out;
  return fail(Code::invalid_argument, "the file is too elaborate to be changed here; edit it");
}

}  // namespace

const std::string_view kInitialClientConfig = R"(# OpenSandbox client configuration
# What counts, first to last: flags, environment variables, this file, defaults.

[connection]
# api_key = "your-api-key"
# domain = "localhost:8080"
# protocol = "http"
# request_timeout = 30
# start_server = true  # one for the occasion, when none answers at the usual address
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
  into.is_named = bool(root.at_path("connection.domain"));
  TRY(read(root, "connection.protocol", path, into.protocol));
  TRY(read(root, "connection.request_timeout", path, into.request_timeout));
  TRY(read(root, "connection.use_server_proxy", path, into.use_server_proxy));
  TRY(read(root, "connection.start_server", path, into.start_server));
  TRY(read(root, "connection.ca_file", path, into.tls.authority));
  TRY(read(root, "connection.client_cert", path, into.tls.certificate));
  TRY(read(root, "connection.client_key", path, into.tls.key));
  TRY(read(root, "connection.context", path, into.chosen_context));
  TRY(read_contexts(root, path, into));
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
  TRY(check_file(text));
  Lines all(text);
  set_line(all.lines, section, field, literal(value));
  return checked(all);
}

Result<void> check_context_name(std::string_view name) {
  if (is_word(name) && name.size() <= 64) return {};
  return fail(Code::invalid_argument, "a name is up to 64 letters, digits, - and _");
}

Result<std::string> put_context(std::string_view text, std::string_view name, const Context& context) {
  TRY(check_context_name(name));
  std::string cleared = TRY(remove_context(text, name));
  Lines all(cleared);
  std::string section = fmt::format("contexts.{}", name);
  for (auto [field, value] : {std::pair{"domain", &context.domain},
                              {"protocol", &context.protocol},
                              {"api_key", &context.api_key},
                              {"ca_file", &context.tls.authority},
                              {"client_cert", &context.tls.certificate},
                              {"client_key", &context.tls.key}})
    if (!value->empty()) set_line(all.lines, section, field, in_quotes(*value));
  return checked(all);
}

Result<std::string> remove_context(std::string_view text, std::string_view name) {
  TRY(check_context_name(name));
  TRY(check_file(text));
  Lines all(text);
  Range there = find_section(all.lines, fmt::format("contexts.{}", name));
  all.lines.erase(there.begin, there.end);
  return checked(all);
}

Result<std::string> choose_context(std::string_view text, std::string_view name) {
  TRY(check_file(text));
  Lines all(text);
  if (!name.empty()) {
    set_line(all.lines, "connection", "context", in_quotes(name));
    return checked(all);
  }
  Range there = find_section(all.lines, "connection");
  if (there.begin == all.lines.end()) return checked(all);
  if (auto at = find_field(there, "context"); at != there.end) all.lines.erase(at);
  return checked(all);
}

Result<void> write_client_config(const std::string& path, std::string_view text) {
  std::error_code error;
  std::filesystem::path to(path);
  if (to.has_parent_path()) std::filesystem::create_directories(to.parent_path(), error);
  if (error) return fail_errno("make the directory of the settings", error.value());
  std::string staged = path + ".new-" + std::to_string(::getpid());
  TRY(write_file(staged, text, O_CREAT | O_EXCL, 0600));
  if (::rename(staged.c_str(), path.c_str()) == 0) return {};
  int why = errno;
  ::unlink(staged.c_str());
  return fail_errno("rename", why);
}

std::string masked(const std::string& key) {
  if (key.size() <= 4) return std::string(key.size(), '*');
  return key.substr(0, 2) + std::string(key.size() - 4, '*') + key.substr(key.size() - 2);
}

}  // namespace osb::cli
