#pragma once

// Inotify watches on a path, with the directories below it on request, and their events as JSON.

#include <map>
#include <string>

#include "base/fd.h"

namespace osb::execd {

class FileWatch {
 public:
  enum class Below { no, yes };
  static constexpr size_t kMaxDirectories = 8192;

  // Code::exhausted when there are more directories than can be watched.
  static Result<FileWatch> create(const std::string& path, Below below);
  int fd() const { return fd_.get(); }  // readable when there is something; not blocking
  // What has happened, as events; "" when nothing of interest. `gone` becomes true when the watched path
  // itself is no more.
  std::string read_events(int64_t now, bool& gone);

 private:
  Result<void> add(const std::string& path);
  Result<void> add_tree(const std::string& path);

  Fd fd_;
  std::string root_;
  Below below_ = Below::no;
  std::map<int, std::string> paths_;
};

}  // namespace osb::execd
