#include "sys/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ids.h"

namespace osb::sys {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxDepth = 32;

// One walk through one thing in the trash.
class Removal {
 public:
  Removal(int trash, const std::string& name, Clock::time_point end)
      : trash_(trash), name_(name), end_(end) {}

  // Whether it is gone.
  Result<bool> run() {
    while (true) {
      changed_ = false;
      auto done = remove_entry(trash_, name_.c_str(), 0);
      if (is_gone_) return true;
      if (late()) return false;
      if (changed_) continue;
      // Something cannot be removed, and what could be is gone: trying again would not end.
      if (!done) return std::unexpected(std::move(done.error()));
      return fail(Code::internal, "a directory in the trash is not empty and shows nothing");
    }
  }

 private:
  bool late() const { return Clock::now() >= end_; }

  Result<void> remove_entry(int parent, const char* name, int depth);
  Result<void> empty_directory(int dir, int depth);
  bool removed(int parent, const char* name, int flags, int depth);

  int trash_;
  const std::string& name_;
  Clock::time_point end_;
  int top_ = -1;  // of the thing itself, once it is open
  bool changed_ = false, is_gone_ = false;
};

bool Removal::removed(int parent, const char* name, int flags, int depth) {
  if (::unlinkat(parent, name, flags) < 0 && errno != ENOENT) return false;
  changed_ = true;
  is_gone_ |= depth == 0;
  return true;
}

Result<void> Removal::empty_directory(int dir, int depth) {
  DIR* stream = ::fdopendir(dir);
  if (!stream) {
    ::close(dir);
    return fail_errno("read a directory in the trash");
  }
  if (depth == 1) top_ = ::dirfd(stream);
  Result<void> result;
  while (struct dirent* entry = ::readdir(stream)) {
    std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (late()) break;
    if (entry->d_type != DT_DIR && removed(::dirfd(stream), entry->d_name, 0, depth)) continue;
    auto done = remove_entry(::dirfd(stream), entry->d_name, depth);
    if (!done) result = std::move(done);  // go on: remove as much as can be removed
  }
  ::closedir(stream);
  return result;
}

Result<void> Removal::remove_entry(int parent, const char* name, int depth) {
  if (removed(parent, name, AT_REMOVEDIR, depth)) return {};
  if (errno == ENOTDIR) {
    if (removed(parent, name, 0, depth)) return {};
    return fail_errno("remove a file in the trash");
  }
  if (errno != ENOTEMPTY && errno != EEXIST) return fail_errno("remove a directory in the trash");
  if (depth >= kMaxDepth) {
    if (::renameat(parent, name, top_, new_hex_id().c_str()) < 0)
      return fail_errno("move a directory up in the trash");
    changed_ = true;
    return {};
  }
  int dir = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir < 0) return fail_errno("open a directory in the trash");
  TRY(empty_directory(dir, depth + 1));
  if (removed(parent, name, AT_REMOVEDIR, depth)) return {};
  // What was moved up meanwhile, or not reached in time, is for the next walk.
  if (errno == ENOTEMPTY || errno == EEXIST) return {};
  return fail_errno("remove an emptied directory in the trash");
}

}  // namespace

Result<bool> remove_from_trash(int trash, const std::string& name, std::chrono::milliseconds turn) {
  return Removal(trash, name, Clock::now() + turn).run();
}

Result<void> remove_from_trash(int trash, const std::string& name) {
  TRY(Removal(trash, name, Clock::time_point::max()).run());
  return {};
}

}  // namespace osb::sys
