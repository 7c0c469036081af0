#include "launcher/diff.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>

#include "base/cleanup.h"
#include "base/fd.h"
#include "launcher/confined.h"
#include "launcher/uppers.h"
#include "sys/descriptors.h"
#include "sys/namespaces.h"
#include "sys/tree_copy.h"

namespace osb::launcher {
namespace {

// The overlay puts it on what it copied up from a layer below.
constexpr char kOrigin[] = "trusted.overlay.origin";
constexpr size_t kMaxText =
    6000;  // of one message: a line is a path, and four bytes for each that is escaped
constexpr size_t kAtOnce = sys::kMostDescriptors;

// Messages of the confined process: "c" and descriptors, answered by a letter for each, M or A; "t" and
// lines; "e" and a sentence.

void append_escaped(std::string& out, std::string_view path) {
  for (unsigned char c : path) {
    if (c >= 0x20 && c != 0x7f && c != '\\') {
      out.push_back(static_cast<char>(c));
    } else {
      char text[8];
      std::snprintf(text, sizeof text, "\\%03o", c);
      out += text;
    }
  }
}

// In the confined process.
class Walk {
 public:
  Walk(int socket, std::string prefix) : socket_(socket), prefix_(std::move(prefix)) {}

  Result<void> run(int top) {
    TRY(enter(top, ".", ""));
    while (!stack_.empty()) {
      errno = 0;
      struct dirent* entry = ::readdir(stack_.back().stream.get());
      if (!entry && errno != 0) return fail_errno("read a directory");
      if (!entry) {
        stack_.pop_back();
        continue;
      }
      std::string_view name = entry->d_name;
      if (name != "." && name != "..") TRY(look(entry->d_name));
    }
    TRY(ask());
    return send_lines();
  }

 private:
  struct CloseDirectory {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  struct Level {
    std::unique_ptr<DIR, CloseDirectory> stream;
    std::string path;
  };
  struct Open {
    Fd fd;
    std::string path;
  };

  Result<void> enter(int parent, const char* name, std::string path) {
    if (stack_.size() >= sys::kMostDepth) return fail(Code::too_large, "directories are nested too deep");
    int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME);
    if (fd < 0) return errno == ENOENT ? Result<void>() : fail_errno("open a directory");
    DIR* stream = ::fdopendir(fd);
    if (!stream) {
      ::close(fd);
      return fail_errno("read a directory");
    }
    stack_.push_back({std::unique_ptr<DIR, CloseDirectory>(stream), std::move(path)});
    return {};
  }

  Result<void> look(const char* name) {
    int parent = ::dirfd(stack_.back().stream.get());
    std::string path = stack_.back().path + "/" + name;
    struct stat info{};
    if (::fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0) return {};  // it has just gone
    if (++seen_ > kMostChanges) return fail(Code::too_large, "there are more than a million changes");
    if (S_ISCHR(info.st_mode) && info.st_rdev == makedev(0, 0)) return say('D', path);
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) return say('A', path);
    Fd fd(::openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOATIME));
    if (!fd.valid()) return {};
    open_.push_back({std::move(fd), path});
    if (open_.size() == kAtOnce) TRY(ask());
    return S_ISDIR(info.st_mode) ? enter(parent, name, std::move(path)) : Result<void>();
  }

  Result<void> ask() {
    if (open_.empty()) return {};
    std::vector<int> fds;
    for (const Open& one : open_) fds.push_back(one.fd.get());
    if (int sent = sys::send_with_descriptors(socket_, "c", fds); sent < 0)
      return fail_errno("ask what was there", -sent);
    std::array<char, kAtOnce> answer{};
    std::vector<Fd> none;
    size_t n = TRY(sys::receive_with_descriptors(socket_, answer, none));
    if (n != open_.size()) return fail(Code::unavailable, "nobody says what was there");
    for (size_t i = 0; i < n; ++i) TRY(say(answer[i], open_[i].path));
    open_.clear();
    return {};
  }

  Result<void> say(char kind, std::string_view path) {
    std::string line(1, kind);
    line += ' ';
    append_escaped(line, prefix_);
    append_escaped(line, path);
    line += '\n';
    if (lines_.size() + line.size() > kMaxText) TRY(send_lines());
    lines_ += line;
    return {};
  }

  Result<void> send_lines() {
    // One that is longer than a message is told in parts.
    for (std::string_view rest = lines_; !rest.empty();) {
      std::string part = "t" + std::string(rest.substr(0, kMaxText));
      if (int sent = sys::send_with_descriptors(socket_, part, {}); sent < 0)
        return fail_errno("tell changes", -sent);
      rest.remove_prefix(part.size() - 1);
    }
    lines_.clear();
    return {};
  }

  int socket_;
  std::string prefix_, lines_;
  std::vector<Level> stack_;
  std::vector<Open> open_;
  size_t seen_ = 0;
};

// With rights, which it needs for the overlay's attribute.
Result<void> hear(int socket, int to) {
  std::string buffer(kMaxText + 16, '\0');
  while (true) {
    std::vector<Fd> descriptors;
    size_t n = TRY(sys::receive_with_descriptors(socket, buffer, descriptors));
    if (n == 0) return {};
    std::string_view text(buffer.data() + 1, n - 1);
    if (buffer[0] == 't') {
      TRY(write_all(to, text));
    } else if (buffer[0] == 'c') {
      std::string answer;
      for (const Fd& fd : descriptors)
        answer.push_back(::fgetxattr(fd.get(), kOrigin, nullptr, 0) >= 0 ? 'M' : 'A');
      if (int sent = sys::send_with_descriptors(socket, answer, {}); sent < 0)
        return fail_errno("answer the walking process", -sent);
    } else {
      return fail(Code::internal, std::string(text));
    }
  }
}

Result<void> tell_changes(const StateDir& state, const std::string& id, int to) {
  Fd sandbox = TRY(state.open_sandbox(id));
  uint32_t first_id = TRY(state.range_of(id));
  Uppers uppers = TRY(open_uppers(sandbox.get()));
  std::vector<Upper> found = TRY(find_uppers(uppers));
  Fd space = TRY(sys::create_user_namespace(first_id, kConfinedIds));
  std::vector<std::string> prefixes;
  std::vector<Fd> opened;
  ConfinedOrder order{state.path(state::kMount), space.get(), {}, {}};
  for (Upper& upper : found) {
    // The overlay of a tree is named after where it is.
    prefixes.push_back(upper.overlay == "root" ? "" : "/" + upper.overlay);
    Fd& from = opened.emplace_back(uppers.is_mounted_alone ? std::move(upper.directory)
                                                           : TRY(readable_directory(upper.directory.get())));
    order.directories.push_back(from.get());
  }
  order.job = [&](const std::vector<int>& directories, int socket) {
    for (size_t i = 0; i < directories.size(); ++i) {
      auto done = Walk(socket, prefixes[i]).run(directories[i]);
      if (done) continue;
      (void)sys::send_with_descriptors(socket, "e" + done.error().message.substr(0, 1000), {});
      return;
    }
  };
  ConfinedProcess process = TRY(start_confined(order));
  Cleanup undo;
  undo.push([&] { end_confined(process); });
  return hear(process.socket.get(), to);
}

}  // namespace

Result<void> write_diff(const StateDir& state, const std::string& id, int to) {
  auto told = tell_changes(state, id, to);
  std::string last = ".\n";
  if (!told) {
    last = "! " + std::to_string(static_cast<int>(told.error().code)) + " ";
    append_escaped(last, told.error().message);
    last += '\n';
  }
  TRY(write_all(to, last));
  return told;
}

}  // namespace osb::launcher
