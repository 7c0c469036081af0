#include "execd/file_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "execd/tree_walk.h"
#include "json/escape.h"

namespace osb::execd {
namespace {

constexpr uint32_t kInterest = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |
                               IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK;

const char* type_of(uint32_t mask) {
  if (mask & IN_CREATE) return "created";
  if (mask & IN_MODIFY) return "modified";
  if (mask & IN_DELETE) return "deleted";
  if (mask & IN_MOVED_FROM) return "moved_from";
  if (mask & IN_MOVED_TO) return "moved_to";
  if (mask & IN_ATTRIB) return "attributes";
  return nullptr;
}

void append_event(std::string& out, const char* type, const std::string& path, bool directory, int64_t now) {
  out.append("{\"type\":\"").append(type).append("\",\"path\":");
  json::append_string(out, path);
  out.append(directory ? ",\"directory\":true" : ",\"directory\":false");
  out.append(",\"timestamp\":").append(std::to_string(now)).append("}\n\n");
}

}  // namespace

Result<FileWatch> FileWatch::create(const std::string& path, Below below) {
  FileWatch watch;
  watch.fd_ = Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!watch.fd_.valid()) return fail_errno("watch");
  watch.root_ = path;
  watch.below_ = below;
  TRY(below == Below::yes ? watch.add_tree(path) : watch.add(path));
  return watch;
}

Result<void> FileWatch::add(const std::string& path) {
  if (paths_.size() >= kMaxDirectories) {
    return fail(Code::exhausted,
                "more than " + std::to_string(kMaxDirectories) + " directories below " + root_);
  }
  int descriptor = ::inotify_add_watch(fd_.get(), path.c_str(), kInterest);
  if (descriptor < 0) return fail_errno("watch " + path);
  paths_[descriptor] = path;
  return {};
}

Result<void> FileWatch::add_tree(const std::string& path) {
  TRY(add(path));
  struct stat info;
  if (::stat(path.c_str(), &info) < 0 || !S_ISDIR(info.st_mode)) return {};
  auto walk = TRY(TreeWalk::open(path, INT64_MAX));
  while (const TreeWalk::Entry* entry = walk.next()) {
    if (!S_ISDIR(entry->info.st_mode)) continue;
    auto added = add(entry->path);
    if (!added && added.error().code == Code::exhausted) return added;  // vanished ones are no error
  }
  return {};
}

std::string FileWatch::read_events(int64_t now, bool& gone) {
  alignas(inotify_event) char buffer[16 * 1024];
  std::string out;
  ssize_t n = ::read(fd_.get(), buffer, sizeof buffer);
  for (ssize_t at = 0; at < n;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
    at += static_cast<ssize_t>(sizeof *event + event->len);
    if (event->mask & IN_Q_OVERFLOW) append_event(out, "overflow", root_, false, now);
    auto found = paths_.find(event->wd);
    if (found == paths_.end()) continue;
    std::string path = found->second;
    if (event->mask & IN_IGNORED) {
      gone = gone || path == root_;
      paths_.erase(found);
      continue;
    }
    if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) && path == root_) {
      append_event(out, event->mask & IN_DELETE_SELF ? "deleted" : "moved_from", path, event->mask & IN_ISDIR,
                   now);
      gone = true;
      continue;
    }
    const char* type = type_of(event->mask);
    if (!type) continue;
    bool directory = event->mask & IN_ISDIR;
    if (event->len > 0) path += std::string(path.ends_with('/') ? "" : "/") + event->name;
    append_event(out, type, path, directory, now);
    if (directory && below_ == Below::yes && (event->mask & (IN_CREATE | IN_MOVED_TO)) && !add_tree(path)) {
      append_event(out, "overflow", path, true, now);
    }
  }
  return out;
}

}  // namespace osb::execd
