#include "image/reference.h"

#include <algorithm>

#include "image/pull_reference.h"

namespace osb::image {
namespace {

bool is_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
bool is_name_char(char c) {
  return is_alnum(c) || std::string_view("._-/:@").find(c) != std::string_view::npos;
}

// The first component of "registry.example:5000/a/b" is a host, that of "a/b" is not.
bool is_host(std::string_view component) {
  return component == "localhost" || component.find_first_of(".:") != component.npos;
}

std::string_view without_host(std::string_view name) {
  size_t slash = name.find('/');
  if (slash == name.npos || !is_host(name.substr(0, slash))) return name;
  return name.substr(slash + 1);
}

// Without ":tag" and "@digest".
std::string_view repository(std::string_view name) {
  name = name.substr(0, name.find('@'));
  size_t slash = name.rfind('/');
  size_t colon = name.find(':', slash == name.npos ? 0 : slash);
  return name.substr(0, colon);
}

bool has_version(std::string_view name) { return repository(name).size() != name.size(); }

void add(std::vector<std::string>& list, std::string name) {
  if (!name.empty() && std::ranges::find(list, name) == list.end()) list.push_back(std::move(name));
}

void add_with_latest(std::vector<std::string>& list, std::string_view name) {
  add(list, std::string(name));
  if (name.ends_with(":latest")) {
    add(list, std::string(name.substr(0, name.size() - 7)));
  } else if (!has_version(name)) {
    add(list, std::string(name) + ":latest");
  }
}

const std::string* find_alias(const std::map<std::string, std::string>& aliases, const std::string& asked) {
  if (auto exact = aliases.find(asked); exact != aliases.end()) return &exact->second;
  const std::pair<const std::string, std::string>* best = nullptr;
  for (const auto& alias : aliases) {
    if (alias.first.find('*') == std::string::npos || !matches(alias.first, asked)) continue;
    if (!best || alias.first.size() > best->first.size()) best = &alias;
  }
  return best ? &best->second : nullptr;
}

// "[::1]:5000/app" -> "app": brackets belong around the address of a registry, and nowhere else.
std::string_view behind_address(std::string_view name) {
  size_t slash = name.starts_with('[') ? name.find('/') : name.npos;
  if (slash == name.npos || !is_registry_host(name.substr(0, slash))) return name;
  return name.substr(slash + 1);
}

}  // namespace

Result<void> check_name(std::string_view name) {
  if (name == kHostImage)
    return fail(Code::invalid_argument, "the name host belongs to the host's own image");
  std::string_view rest = behind_address(name);
  bool fine =
      !rest.empty() && name.size() <= 255 && is_alnum(rest[0]) && std::ranges::all_of(rest, is_name_char);
  if (fine) return {};
  return fail(
      Code::invalid_argument,
      "a name has letters, digits and . _ - / : @ and begins with a letter or digit, at most 255 characters");
}

std::string name_from_file(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  path = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  for (std::string_view ending : {".gz", ".zst", ".xz", ".tgz", ".tar"}) {
    if (path.size() > ending.size() && path.ends_with(ending)) path.remove_suffix(ending.size());
  }
  std::string name(path);
  std::ranges::replace_if(name, [](char c) { return !is_name_char(c); }, '-');
  while (!name.empty() && !is_alnum(name[0])) name.erase(0, 1);
  return name;
}

bool matches(std::string_view pattern, std::string_view text) {
  // Greedy with one point to come back to: the last star is the only one worth trying again.
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string> candidates(const std::string& asked,
                                    const std::map<std::string, std::string>& aliases) {
  std::vector<std::string> out;
  add(out, asked);
  if (const std::string* alias = find_alias(aliases, asked)) add_with_latest(out, *alias);
  add_with_latest(out, asked);
  for (std::string_view hub : {"docker.io/library/", "docker.io/", "index.docker.io/library/", "library/"}) {
    if (asked.starts_with(hub)) add_with_latest(out, std::string_view(asked).substr(hub.size()));
  }
  if (repository(without_host(asked)) == kCodeInterpreter) add_with_latest(out, kCodeInterpreter);
  return out;
}

std::vector<std::string> spellings(const std::string& asked, std::string_view default_registry) {
  std::vector<std::string> out;
  add_with_latest(out, asked);
  auto reference = parse_pull_reference(asked, default_registry);
  if (!reference) return out;
  constexpr std::string_view kHub = "docker.io/", kOfficial = "docker.io/library/";
  std::vector<std::string> names = {reference->name()};
  if (names[0].starts_with(kOfficial)) names.push_back(std::string(kHub) + names[0].substr(kOfficial.size()));
  for (const std::string& name : names) {
    add_with_latest(out, name);
    if (name.starts_with(kHub)) add_with_latest(out, "index." + name);
    if (reference->registry == default_registry) add_with_latest(out, without_host(name));
  }
  return out;
}

}  // namespace osb::image
