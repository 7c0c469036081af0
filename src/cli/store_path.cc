#include "cli/store_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "base/fd.h"
#include "cli/machine_probe.h"

namespace osb::cli {
namespace {

constexpr std::string_view kDatabaseMark("SQLite format 3\0", 16);  // the first bytes of every one of them
constexpr char kAnother[] = "name a file that does not exist yet, or a database of this service";

std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

// What the file is, whoever may use it.
Result<void> check_kind(const std::string& path, const auto& refuse) {
  struct stat info{};
  if (::stat(path.c_str(), &info) < 0) {
    if (errno != ENOENT) return refuse("look at " + path + ": " + errno_text(errno), kAnother);
    if (::stat(parent_of(path).c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
    return refuse(path + " is in a directory that does not exist",
                  "remove path, and the database is below native.state_dir; or make the directory, writable "
                  "for the user of the service");
  }
  if (!S_ISREG(info.st_mode)) return refuse(path + " is not a file", kAnother);
  if (info.st_size == 0) return {};
  auto file = open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
  if (!file) return refuse(file.error().message, kAnother);
  char start[kDatabaseMark.size()];
  ssize_t n = ::pread(file->get(), start, sizeof start, 0);
  if (n >= 0 && std::string_view(start, static_cast<size_t>(n)) == kDatabaseMark) return {};
  return refuse(path + " is not a database, so it was not touched", kAnother);
}

// In a process of its own, because only the kernel knows what an account may do: it becomes that account.
Result<std::string> try_as(const runtime::ServiceAccount& account, const std::string& path) {
  if (::geteuid() == 0 &&
      (::setgroups(0, nullptr) < 0 || ::setresgid(account.gid, account.gid, account.gid) < 0 ||
       ::setresuid(account.uid, account.uid, account.uid) < 0)) {
    return fail_errno("become the service's user");
  }
  auto tried = [](const std::string& what, int mode) -> Result<std::string> {
    if (::access(what.c_str(), mode) == 0 || errno == EROFS) return std::string();
    return fail_errno(what);
  };
  // SQLite makes files beside its own.
  TRY(tried(parent_of(path), W_OK | X_OK));
  if (::access(path.c_str(), F_OK) < 0 && errno == ENOENT) return std::string();
  return tried(path, R_OK | W_OK);
}

// Other servers set no version in their databases; ours always has one.
bool may_be_ours(const std::string& path) {
  constexpr off_t kVersionAt = 60;
  auto file = open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
  uint32_t version = 0;
  return file && ::pread(file->get(), &version, sizeof version, kVersionAt) == sizeof version && version != 0;
}

}  // namespace

Result<void> check_store_path(const server::Config& config, const runtime::ServiceAccount& account) {
  auto refuse = [&](std::string_view why, std::string_view remedy) {
    return fail(Code::invalid_argument,
                fmt::format("{}: {}\n  remedy: {}", config.place("store.path"), why, remedy));
  };
  if (const std::string& others = config.others_store_path; !others.empty() && may_be_ours(others)) {
    return refuse(
        "this usual place of other OpenSandbox servers has a database that may be of this one",
        fmt::format("write path = \"{}\" to go on with it, or remove path to begin a new one", others));
  }
  const std::string& path = config.store_path;
  if (path.empty()) return {};
  TRY(check_kind(path, refuse));
  auto allowed = run_in_child([&] { return try_as(account, path); });
  if (allowed || allowed.error().code != Code::permission_denied) return {};
  return refuse(fmt::format("the user of the service (uid {}) may not write there: {}",
                            ::geteuid() == 0 ? account.uid : ::geteuid(), allowed.error().message),
                fmt::format("remove path, and the database is below native.state_dir; or give the service a "
                            "directory of its own: install -d -o USER {}",
                            parent_of(path)));
}

}  // namespace osb::cli
