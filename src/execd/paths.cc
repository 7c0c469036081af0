#include "execd/paths.h"

#include <sys/stat.h>

#include <vector>

#include "base/strings.h"

namespace osb::execd {

std::string clean_path(std::string_view path, std::string_view base) {
  std::vector<std::string_view> parts;
  auto walk = [&](std::string_view text) {
    for (std::string_view part : split(text, '/')) {
      if (part.empty() || part == ".") continue;
      if (part != "..") {
        parts.push_back(part);
      } else if (!parts.empty()) {
        parts.pop_back();
      }
    }
  };
  if (!path.starts_with('/')) walk(base);
  walk(path);
  std::string out;
  for (std::string_view part : parts) out.append("/").append(part);
  return out.empty() ? "/" : out;
}

Result<std::string> expand_path(std::string_view path, const Environment& env) {
  if (path.find('\0') != path.npos) return fail(Code::invalid_argument, "a path cannot contain a NUL byte");
  std::string missing;
  auto expanded = expand_variables(path, env, Undefined::error, &missing);
  if (!expanded) {
    return fail(Code::invalid_argument,
                "path '" + std::string(path) + "' uses the variable " + missing + ", which is not set");
  }
  if (*expanded == "~" || expanded->starts_with("~/") || expanded->starts_with("~\\")) {
    const std::string* home = env.find("HOME");
    if (!home || home->empty()) {
      return fail(Code::invalid_argument, "path '" + std::string(path) + "' uses '~', but HOME is not set");
    }
    return *home + expanded->substr(1);
  }
  return std::move(*expanded);
}

Result<std::string> resolve_path(std::string_view path, const Environment& env, std::string_view base) {
  if (path.find('$') != path.npos && path.find('\0') == path.npos) {
    std::string literal = clean_path(path, base);
    struct stat info;
    if (::lstat(literal.c_str(), &info) == 0) return literal;
  }
  return clean_path(TRY(expand_path(path, env)), base);
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view parent_path(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == path.npos ? std::string_view("/") : path.substr(0, slash);
}

}  // namespace osb::execd
