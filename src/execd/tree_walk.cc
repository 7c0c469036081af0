#include "execd/tree_walk.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <memory>

namespace osb::execd {
namespace {

constexpr size_t kMaxLevels = 2048;  // each holds a descriptor

// Names in byte order. False when the directory cannot be read.
bool read_names(int dir, std::vector<std::string>& names) {
  int copy = ::fcntl(dir, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return false;
  std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy), ::closedir);
  if (!stream) {
    ::close(copy);
    return false;
  }
  while (dirent* entry = ::readdir(stream.get())) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return true;
}

}  // namespace

Result<TreeWalk> TreeWalk::open(const std::string& root, int64_t depth) {
  TreeWalk walk;
  walk.depth_ = depth;
  Fd dir = TRY(open_at(AT_FDCWD, root, O_RDONLY | O_DIRECTORY));
  if (depth > 0 && !walk.descend(std::move(dir), root == "/" ? "" : root))
    return fail_errno("read directory " + root);
  return walk;
}

TreeWalk TreeWalk::single(const std::string& path, const struct stat& info) {
  TreeWalk walk;
  walk.single_ = true;
  walk.entry_.path = path;
  walk.entry_.info = info;
  return walk;
}

bool TreeWalk::descend(Fd dir, std::string path) {
  Level level{std::move(dir), std::move(path), {}, 0};
  if (!read_names(level.dir.get(), level.names)) return false;
  levels_.push_back(std::move(level));
  return true;
}

const TreeWalk::Entry* TreeWalk::next() {
  // The directory that was handed out last is entered only now: the caller has seen it first.
  if (!levels_.empty() && S_ISDIR(entry_.info.st_mode) && levels_.size() < kMaxLevels &&
      static_cast<int64_t>(levels_.size()) < depth_) {
    Level& level = levels_.back();
    auto dir = open_at(level.dir.get(), level.names[level.at - 1], O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (dir) descend(std::move(*dir), entry_.path);
  }
  if (single_) {
    single_ = false;
    entry_.name = std::string_view(entry_.path).substr(entry_.path.rfind('/') + 1);
    return &entry_;
  }
  entry_.info.st_mode = 0;
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (level.at == level.names.size()) {
      levels_.pop_back();
      continue;
    }
    const std::string& name = level.names[level.at++];
    if (::fstatat(level.dir.get(), name.c_str(), &entry_.info, AT_SYMLINK_NOFOLLOW) < 0) {
      entry_.info.st_mode = 0;
      continue;
    }
    entry_.path = level.path + "/" + name;
    entry_.name = std::string_view(entry_.path).substr(level.path.size() + 1);
    return &entry_;
  }
  return nullptr;
}

}  // namespace osb::execd
