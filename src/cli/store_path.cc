#include "cli/store_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "base/fd.h"

namespace osb::cli {
namespace {

constexpr std::string_view kDatabaseMark("SQLite format 3\0", 16);  // the first bytes of every one of them

std::unexpected<Error> refuse(const std::string& path, const std::string& why, const char* remedy) {
  return fail(Code::invalid_argument, "store.path: " + path + " " + why + "\n  remedy: " + remedy);
}

}  // namespace

Result<void> check_store_path(const std::string& path) {
  constexpr char kAnother[] = "name a file that does not exist yet, or a database of this service";
  if (path.empty()) return {};
  struct stat info{};
  if (::stat(path.c_str(), &info) < 0) {
    if (errno != ENOENT) return fail_errno("store.path: look at " + path);
    size_t slash = path.rfind('/');
    std::string parent = slash == path.npos ? "." : path.substr(0, slash + 1);
    if (::stat(parent.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
    return refuse(path, "is in a directory that does not exist",
                  "make the directory, writable for the user of the service");
  }
  if (!S_ISREG(info.st_mode)) return refuse(path, "is not a file", kAnother);
  if (info.st_size == 0) return {};
  Fd file = TRY(in_context("store.path", open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK)));
  char start[kDatabaseMark.size()];
  ssize_t n = ::pread(file.get(), start, sizeof start, 0);
  if (n >= 0 && std::string_view(start, static_cast<size_t>(n)) == kDatabaseMark) return {};
  return refuse(path, "is not a database, so it was not touched", kAnother);
}

}  // namespace osb::cli
