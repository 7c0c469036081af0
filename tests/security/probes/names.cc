#include <time.h>

#include "tools.h"

namespace osb::probe {
namespace {

constexpr int kDepth = 16;
constexpr size_t kMostOfAFile = 256 * 1024;
constexpr time_t kSeconds = 15;

// Of other kinds of files a read is endless, or takes something away from whoever waits for it.
constexpr std::string_view kLeftOut[] = {"mem",        "pagemap",       "kcore",       "kmsg",
                                         "kpagecount", "kpageflags",    "kpagecgroup", "task",
                                         "trace_pipe", "trace_pipe_raw"};

bool is_left_out(std::string_view name) {
  for (std::string_view one : kLeftOut)
    if (name == one) return true;
  return false;
}

std::string from_hex(std::string_view digits) {
  auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string text;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    text += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  return text;
}

// Looks for names in the names, targets and contents of files.
class Search {
 public:
  Search(Attempts& a, Args names) : a_(a), end_(::time(nullptr) + kSeconds) {
    for (const char* name : names) names_.push_back(from_hex(name));
  }

  bool look_below(const std::string& path, int depth) {
    for (const std::string& name : list_directory(path)) {
      if (::time(nullptr) >= end_) return false;
      const std::string below = path + "/" + name;
      look_at(name, "the name of", below);
      if (is_left_out(name)) continue;
      if (const auto target = read_link(below)) {
        look_at(*target, "the link", below);
        continue;
      }
      File directory = ::open(below.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
      if (directory.ok()) {
        if (depth > 0 && !look_below(below, depth - 1)) return false;
        continue;
      }
      if (const auto text = read_file(below, kMostOfAFile)) look_at(*text, "", below), ++files_;
    }
    return true;
  }

  size_t files() const { return files_; }

 private:
  void look_at(const std::string& text, const char* kind, const std::string& path) {
    for (const std::string& name : names_) {
      if (name.empty() || text.find(name) == std::string::npos) continue;
      a_.got("found " + name + " in " + kind + (*kind ? " " : "") + path);
    }
  }

  Attempts& a_;
  std::vector<std::string> names_;
  time_t end_;
  size_t files_ = 0;
};

// A name found is a sandbox found: ids, and what directories, sockets and groups are called after.
void run(Attempts& a, Args names) {
  if (names.empty()) return a.skipped("no name of anything outside was given");
  Search search(a, names);
  for (const char* top : {"/proc", "/sys"}) {
    const bool whole = search.look_below(top, kDepth);
    a.stopped("no name of anything outside in " + std::to_string(search.files()) + " files",
              std::string(top) + (whole ? "" : ", until time was up"));
  }
}

}  // namespace

extern const Probe probe_names = {
    "names", "find names of things outside in /proc and /sys (arguments: the names, in hexadecimal digits)",
    nullptr, run};

}  // namespace osb::probe
