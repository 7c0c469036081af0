#include "cli/file_tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/strings.h"
#include "sys/directory.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using Kind = TreeEntry::Kind;

constexpr size_t kMostEntries = 100'000;  // of one directory

Kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return Kind::file;
  if (S_ISDIR(mode)) return Kind::directory;
  return S_ISLNK(mode) ? Kind::link : Kind::other;
}

TreeEntry entry_of(std::string name, const struct stat& info) {
  return {std::move(name), kind_of(info.st_mode), info.st_mode & 07777, static_cast<uint64_t>(info.st_size)};
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Digits such as 755 as they are read, as bits.
unsigned mode_from(int64_t digits) {
  unsigned mode = 0;
  for (int shift = 0; digits > 0 && shift < 12; shift += 3, digits /= 10)
    mode |= static_cast<unsigned>(digits % 10 & 7) << shift;
  return mode;
}

TreeEntry entry_from(const json::Field& field) {
  std::string type = field["type"].string().value_or("");
  return {.name = last_name(field["path"].string().value_or("")),
          .kind = type == "file"        ? Kind::file
                  : type == "directory" ? Kind::directory
                  : type == "symlink"   ? Kind::link
                                        : Kind::other,
          .mode = mode_from(field["mode"].integer().value_or(0)),
          .size = static_cast<uint64_t>(std::max<int64_t>(0, field["size"].integer().value_or(0)))};
}

void sort(std::vector<TreeEntry>& entries) { std::ranges::sort(entries, {}, &TreeEntry::name); }

}  // namespace

// The context

// A link to an absolute path means the context's own top, as it will mean the image's.
Result<Fd> ContextTree::open_inside(const std::string& path, int flags) const {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const char* name = path.empty() ? "." : path.c_str();
  auto fd = static_cast<int>(::syscall(SYS_openat2, top_.get(), name, &how, sizeof how));
  if (fd < 0) return fail_errno(path.empty() ? "the context" : path);
  return Fd(fd);
}

Result<ContextTree> ContextTree::open(const std::string& directory) {
  Fd top = TRY(open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY));
  ContextTree tree(std::move(top), IgnoreList());
  auto text = tree.read_text(".dockerignore", kMaxIgnoreFile + 1);
  if (!text && text.error().code != Code::not_found) return std::unexpected(std::move(text.error()));
  if (text) tree.ignored_ = TRY(IgnoreList::parse(*text));
  return tree;
}

Result<std::string> ContextTree::read_text(const std::string& path, size_t limit) const {
  Fd file = TRY(open_inside(path, O_RDONLY | O_NONBLOCK));
  return in_context(path, read_all(file.get(), limit));
}

Task<Result<std::optional<TreeEntry>>> ContextTree::find(std::string path) {
  auto found = open_inside(path, O_PATH);
  if (!found && found.error().code == Code::not_found) co_return std::nullopt;
  if (!found) co_return std::unexpected(std::move(found.error()));
  struct stat info{};
  if (::fstat(found->get(), &info) < 0) co_return fail_errno(path);
  co_return entry_of(last_name(path), info);
}

Task<Result<std::vector<TreeEntry>>> ContextTree::list(std::string directory) {
  Fd dir = CO_TRY(open_inside(directory, O_RDONLY | O_DIRECTORY));
  std::vector<TreeEntry> entries;
  for (const std::string& name : CO_TRY(sys::names_in(dir.get()))) {
    struct stat info{};
    if (::fstatat(dir.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0)
      co_return fail_errno(directory + "/" + name);
    entries.push_back(entry_of(name, info));
  }
  if (entries.size() > kMostEntries)
    co_return fail(Code::too_large, directory + ": more than 100,000 names in a directory");
  sort(entries);
  co_return entries;
}

Task<Result<std::string>> ContextTree::read(std::string file) { co_return read_text(file, kMostCopiedFile); }

Task<Result<std::string>> ContextTree::link_at(std::string path) {
  size_t slash = path.rfind('/');
  Fd parent = CO_TRY(open_inside(slash == path.npos ? "" : path.substr(0, slash), O_PATH | O_DIRECTORY));
  char target[4096];
  ssize_t n = ::readlinkat(parent.get(), last_name(path).c_str(), target, sizeof target);
  if (n < 0) co_return fail_errno("read the link " + path);
  co_return std::string(target, static_cast<size_t>(n));
}

// A sandbox

Task<Result<std::string>> SandboxTree::output_of(std::vector<std::string> command) {
  std::string out;
  CommandRequest what{.argv = command, .workdir = "/", .timeout = std::nullopt, .ids = std::pair(0U, 0U)};
  auto last =
      CO_TRY(co_await api_.run(id_, std::move(what), [&out](const StreamEvent& event) -> Result<void> {
        if (event.kind == StreamEvent::Kind::output && out.size() < 8192) out += event.text;
        return {};
      }));
  if (last.kind != StreamEvent::Kind::complete)
    co_return fail(Code::unsupported, command[0] + " in the sandbox: " + last.detail + " " + last.text);
  while (out.ends_with('\n')) out.pop_back();
  co_return out;
}

Task<Result<std::optional<TreeEntry>>> SandboxTree::find(std::string path) {
  std::string target = "/" + path;
  for (int links = 0; links < 40; ++links) {
    auto answer = co_await api_.ask_execd(id_, "GET", "/files/info?path=" + percent_encode(target));
    if (!answer && answer.error().code == Code::not_found) co_return std::nullopt;
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    json::Issues ignored;
    auto found = json::Field::root(*answer, ignored, "info")[target];
    if (!found.present()) co_return std::nullopt;
    TreeEntry entry = entry_from(found);
    entry.name = last_name(path);
    if (entry.kind != Kind::link) co_return entry;
    // Programs of the sandbox resolve it: what it means there is what is meant.
    target = CO_TRY(co_await output_of({"readlink", "-f", "--", target}));
  }
  co_return std::nullopt;
}

Task<Result<std::vector<TreeEntry>>> SandboxTree::list(std::string directory) {
  auto answer = CO_TRY(co_await api_.ask_execd(
      id_, "GET", "/directories/list?depth=1&path=" + percent_encode("/" + directory)));
  json::Issues ignored;
  std::vector<TreeEntry> entries;
  for (const json::Field& item :
       json::Field::root(answer, ignored, "list").array().value_or(std::vector<json::Field>()))
    entries.push_back(entry_from(item));
  sort(entries);
  co_return entries;
}

Task<Result<std::string>> SandboxTree::read(std::string file) {
  return api_.download(id_, "/" + file, kMostCopiedFile);
}

Task<Result<std::string>> SandboxTree::link_at(std::string path) {
  return output_of({"readlink", "--", "/" + path});
}

}  // namespace osb::cli
