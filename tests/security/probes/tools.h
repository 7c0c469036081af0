#pragma once

// What the probes share: children that take the risk, scratch directories, reading small files, numbers of
// system calls that the C library does not name yet.

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probe.h"

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

namespace osb::probe {

// Owns one descriptor.
class File {
 public:
  File(int fd) : fd_(fd) {}  // NOLINT: `File f = ::open(...)` reads well
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Runs the attempt in a child, where a success cannot outlive it and a deadly filter kills only it. The
// attempt returns like a system call: negative with errno set, or not.
template <class F>
Answer in_child(F attempt) {
  const pid_t child = ::fork();
  if (child < 0) return Answer(-1);
  if (child == 0) {
    errno = 0;
    const long rc = attempt();
    ::_exit(rc < 0 ? (errno == 0 ? EIO : errno) : 0);
  }
  int status = 0;
  while (::waitpid(child, &status, __WALL) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return Answer(-1, 0, WTERMSIG(status));
  return Answer(WEXITSTATUS(status) == 0 ? 0 : -1, WEXITSTATUS(status), 0);
}

// A private directory, removed with the plain files and empty directories in it. Empty path: none could be
// made.
class Scratch {
 public:
  Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  bool ok() const { return !path_.empty(); }
  const char* path() const { return path_.c_str(); }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// At most `limit` bytes of a file; nothing when it cannot be opened or read.
std::optional<std::string> read_file(const std::string& path, size_t limit = 65536);
std::optional<std::string> read_link(const std::string& path);
// Names in a directory without the dots; empty when it cannot be read.
std::vector<std::string> list_directory(const std::string& path);
// Numeric names in /proc.
std::vector<std::string> processes();

struct MountEntry {
  std::string point, options, type;  // options: those of the mount, then those of its file system
  bool read_only() const;
};
std::vector<MountEntry> mounts();

// Opens for writing and closes again, without writing: for kernel files this is where permission is decided.
// Never truncates or creates.
Answer writable(const std::string& path);
// Writes back what the file holds now; for kernel files whose permission is decided by the write.
Answer rewrite(const std::string& path);

// Calls `visit` with every non-directory below `path` without following links; it returns false to stop.
template <class F>
bool walk(const std::string& path, int depth, F visit) {
  for (const std::string& name : list_directory(path)) {
    const std::string below = path + "/" + name;
    File directory = ::open(below.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (directory.ok() || errno == EACCES) {
      if (directory.ok() && depth > 0 && !walk(below, depth - 1, visit)) return false;
      if (directory.ok()) continue;
    }
    if (!visit(below)) return false;
  }
  return true;
}

}  // namespace osb::probe
