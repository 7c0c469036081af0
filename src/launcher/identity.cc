#include "launcher/identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/fd.h"
#include "base/hex.h"
#include "base/ids.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "launcher/settings.h"
#include "sys/directory.h"

namespace osb::launcher {
namespace {

constexpr char kIdentity[] = "identity";
constexpr char kUnfinished[] = "identity.new-";  // and random digits
constexpr char kGroupPrefix[] = "opensandbox-";
constexpr size_t kIdDigits = 32, kGroupDigits = 16, kOldGroupDigits = 8;
constexpr size_t kMostBytes = 256;

// Of this version or an earlier one.
bool is_group_name(std::string_view name) {
  if (!name.starts_with(kGroupPrefix)) return false;
  std::string_view digits = name.substr(sizeof kGroupPrefix - 1);
  return is_hex(digits) && (digits.size() == kGroupDigits || digits.size() == kOldGroupDigits);
}

std::unexpected<Error> refuse(const std::string& path, const std::string& why,
                              Code code = Code::wrong_state) {
  return fail(code,
              path + " " + why +
                  ", so nothing was touched\n  remedy: set native.state_dir to a directory that does not "
                  "exist yet or is empty");
}

bool is_own(int dir, const char* name, mode_t kind) {
  struct stat info{};
  return ::fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && (info.st_mode & S_IFMT) == kind &&
         info.st_uid == ::geteuid();
}

// What a version without identities leaves: a service that ran, one of an ordinary user that was only begun,
// and images that were imported before any service ran.
bool is_of_earlier_version(int dir) {
  if (is_own(dir, "lock", S_IFREG) && is_own(dir, state::kSandboxes, S_IFDIR) &&
      is_own(dir, state::kTrash, S_IFDIR)) {
    struct stat database{};
    return ::fstatat(dir, state::kDatabase, &database, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(database.st_mode);
  }
  return is_own(dir, "rootless", S_IFREG) ||
         (is_own(dir, state::kCatalog, S_IFDIR) && is_own(dir, "images/store/lock", S_IFREG));
}

// Nothing of anybody: a fresh file system has a directory of its own in it, and an earlier attempt may have
// been cut short.
bool is_nothing(int dir, const std::string& name) {
  return (name == "lost+found" && is_own(dir, name.c_str(), S_IFDIR)) ||
         (name.starts_with(kUnfinished) && is_own(dir, name.c_str(), S_IFREG));
}

// The file of a service that ran when the power went, before its bytes were on the disk. No sandbox has
// survived that, so nothing is missed under a new name.
bool is_cut_off(int dir) {
  struct stat info{};
  return is_own(dir, kIdentity, S_IFREG) && ::fstatat(dir, kIdentity, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         info.st_size == 0;
}

Identity new_identity() {
  Identity identity;
  identity.id = new_hex_id();
  identity.group = kGroupPrefix + identity.id.substr(0, kGroupDigits);
  return identity;
}

// The name under which a version without identities has sandboxes, if it left any.
std::string earlier_group(int dir, const std::string& given) {
  auto sandboxes = open_beneath(dir, state::kSandboxes, O_RDONLY | O_DIRECTORY);
  if (!sandboxes || sys::is_empty_directory(sandboxes->get()).value_or(true)) return "";
  // The link to its sockets has that name at its end, however the path was spelled then.
  char target[256];
  ssize_t n = ::readlinkat(dir, state::kRun, target, sizeof target);
  std::string_view link(target, n > 0 ? static_cast<size_t>(n) : 0);
  link.remove_prefix(std::min(link.size(), link.rfind('/') + 1));
  return is_group_name(link) ? std::string(link) : cgroup_name(given);
}

Result<Identity> read_from(int dir) {
  Fd file = TRY(open_beneath(dir, kIdentity, O_RDONLY | O_NONBLOCK));
  struct stat info{};
  if (::fstat(file.get(), &info) < 0) return fail_errno("look at the identity");
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid())
    return fail(Code::permission_denied, "the file identity is somebody else's");
  return parse_identity(TRY(read_all(file.get(), kMostBytes)));
}

// Complete or not there; when two write one at the same time, the first one counts for both. Nobody waits for
// the disk, which would double the time of a first start: see is_cut_off.
Result<Identity> write_to(int dir, const Identity& identity) {
  std::string unfinished = kUnfinished + new_hex_id();
  {
    Fd file = TRY(open_at(dir, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    TRY(write_all(file.get(), to_text(identity)));
  }
  int linked = ::linkat(dir, unfinished.c_str(), dir, kIdentity, 0);
  int error = errno;
  ::unlinkat(dir, unfinished.c_str(), 0);
  if (linked < 0 && error != EEXIST) return fail_errno("place the identity", error);
  return read_from(dir);
}

}  // namespace

Result<Identity> parse_identity(std::string_view text) {
  auto lines = split(text, '\n');
  bool is_one = lines.size() == 3 && lines[0].size() == kIdDigits && is_hex(lines[0]) &&
                is_group_name(lines[1]) && lines[2].empty();
  if (!is_one)
    return fail(Code::corrupt,
                "the file identity is damaged\n  remedy: restore it, or remove it when no sandbox of this "
                "service runs any more");
  return Identity{std::string(lines[0]), std::string(lines[1])};
}

std::string fingerprint(const Identity& identity) {
  constexpr size_t kBytes = 16;
  constexpr char kDigits[] = "0123456789abcdef";
  const Sha256Digest digest = sha256_digest("identity " + identity.id);
  std::string out;
  for (uint8_t byte : std::span(digest).first(kBytes)) {
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

std::string to_text(const Identity& identity) { return identity.id + "\n" + identity.group + "\n"; }

Result<std::string> resolve_state_dir(const std::string& given) {
  std::error_code error;
  std::string path = std::filesystem::weakly_canonical(given, error).string();
  if (error) return refuse(given, "cannot be resolved (" + error.message() + ")", Code::invalid_argument);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

Result<Identity> claim_state_dir(const std::string& path, const std::string& given) {
  bool made = ::mkdir(path.c_str(), 0711) == 0;
  if (!made && errno != EEXIST) return fail_errno("make " + path);
  auto opened = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!opened && opened.error().sys_errno == ENOTDIR) return refuse(path, "is not a directory");
  Fd dir = TRY(std::move(opened));
  struct stat info{};
  if (::fstat(dir.get(), &info) < 0) return fail_errno("look at " + path);
  if (info.st_uid != ::geteuid())
    return refuse(path, "belongs to user " + std::to_string(info.st_uid) +
                            " and not to the one who starts the service");
  std::vector<std::string> names = TRY(sys::names_in(dir.get()));
  bool has_identity = std::find(names.begin(), names.end(), kIdentity) != names.end();
  bool cut_off = has_identity && is_cut_off(dir.get());
  if (cut_off) has_identity = false;
  bool earlier = !has_identity && (cut_off || is_of_earlier_version(dir.get()));
  if (!has_identity && !earlier) {
    for (const std::string& name : names) {
      if (!is_nothing(dir.get(), name)) return refuse(path, "has files in it that are not of this service");
    }
    if (!made && info.st_mode & (S_IWGRP | S_IWOTH)) return refuse(path, "can be written by others");
  }
  // Checked before anything changes: a directory whose identity cannot be read is not ours.
  Identity identity = has_identity ? TRY(in_context(path, read_from(dir.get()))) : new_identity();
  // The server, which is not root, has to pass through; nobody else may put anything there.
  mode_t mode = made ? 0711 : ((info.st_mode & 07777) | 0111) & ~(S_IWGRP | S_IWOTH);
  if (mode != (info.st_mode & 07777) && ::fchmod(dir.get(), mode) < 0) return fail_errno("own " + path);
  if (has_identity) return identity;
  if (cut_off && ::unlinkat(dir.get(), kIdentity, 0) < 0 && errno != ENOENT)
    return fail_errno("replace the identity");
  if (std::string group = earlier ? earlier_group(dir.get(), given) : ""; !group.empty())
    identity.group = group;
  return in_context(path, write_to(dir.get(), identity));
}

Result<Identity> read_identity(const std::string& state_dir) {
  Fd dir = TRY(open_at(AT_FDCWD, state_dir, O_RDONLY | O_DIRECTORY));
  return in_context(state_dir, read_from(dir.get()));
}

}  // namespace osb::launcher
