#include "tools.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>

namespace osb::probe {
namespace {

void remove_tree(const std::string& path) {
  for (const std::string& name : list_directory(path)) {
    const std::string below = path + "/" + name;
    if (::unlink(below.c_str()) < 0 && (errno == EISDIR || errno == EPERM)) remove_tree(below);
  }
  ::rmdir(path.c_str());
}

// mountinfo writes blanks and backslashes as three octal digits.
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

Scratch::Scratch() {
  for (const char* parent : {"/tmp", "/var/tmp", "/dev/shm", "/root", ""}) {
    std::string candidate = std::string(parent) + "/osb-probe-XXXXXX";
    if (::mkdtemp(candidate.data()) == nullptr) continue;
    ::chmod(candidate.c_str(), 0755);
    path_ = candidate;
    return;
  }
}

Scratch::~Scratch() {
  if (ok()) remove_tree(path_);
}

std::optional<std::string> read_file(const std::string& path, size_t limit) {
  File file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (!file.ok()) return std::nullopt;
  std::string text(limit, '\0');
  size_t filled = 0;
  while (filled < limit) {
    const ssize_t n = ::read(file.fd(), text.data() + filled, limit - filled);
    if (n < 0 && filled == 0) return std::nullopt;
    if (n <= 0) break;
    filled += static_cast<size_t>(n);
  }
  text.resize(filled);
  return text;
}

std::optional<std::string> read_link(const std::string& path) {
  char target[4096];
  const ssize_t n = ::readlink(path.c_str(), target, sizeof target);
  if (n < 0) return std::nullopt;
  return std::string(target, static_cast<size_t>(n));
}

std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(directory);
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> processes() {
  std::vector<std::string> pids = list_directory("/proc");
  std::erase_if(pids, [](const std::string& name) {
    return !std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; });
  });
  return pids;
}

bool MountEntry::read_only() const {
  const auto flags = split(options, ',');
  return std::ranges::find(flags, "ro") != flags.end();
}

std::vector<MountEntry> mounts() {
  std::vector<MountEntry> entries;
  const std::string text = read_file("/proc/self/mountinfo", 1 << 20).value_or("");
  for (std::string_view line : split(text, '\n')) {
    const auto fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 7 || fields.end() - dash < 4) continue;
    entries.push_back({unescape(fields[4]), std::string(fields[5]) + "," + std::string(*(dash + 3)),
                       std::string(*(dash + 1))});
  }
  return entries;
}

Answer writable(const std::string& path) {
  File file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  return Answer(file.fd());
}

Answer rewrite(const std::string& path) {
  const auto value = read_file(path, 4096);
  if (!value) return Answer(-1);
  File file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (!file.ok()) return Answer(-1);
  const std::string same = value->empty() ? "\n" : *value;
  return Answer(::write(file.fd(), same.data(), same.size()));
}

}  // namespace osb::probe
