#include "docker/sandbox_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ids.h"
#include "base/knock.h"
#include "base/sha256.h"
#include "io/socket.h"
#include "runtime/spec.h"
#include "sys/directory.h"
#include "sys/remove_tree.h"

namespace osb::docker {
namespace {

constexpr int kBacklog = 512;
constexpr char kExecdPrefix[] = "execd-", kSnapshotPrefix[] = "snapshot-";
constexpr char kUnfinished[] = ".new", kBootVolume[] = "boot-volume", kEngine[] = "engine";
constexpr size_t kDigestDigits = 16;

Result<void> make_directory(int dir, const std::string& name, mode_t mode) {
  if (::mkdirat(dir, name.c_str(), mode) < 0) return fail_errno("mkdir " + name);
  // Whatever the umask is.
  if (::fchmodat(dir, name.c_str(), mode, 0) < 0) return fail_errno("chmod " + name);
  return {};
}

Result<void> write_whole(int dir, const std::string& name, std::string_view bytes, mode_t mode) {
  std::string fresh = name + kUnfinished;
  ::unlinkat(dir, fresh.c_str(), 0);
  {
    Fd file = TRY(open_at(dir, fresh, O_WRONLY | O_CREAT | O_EXCL, mode));
    TRY(write_all(file.get(), bytes));
    if (::fchmod(file.get(), mode) < 0) return fail_errno("chmod " + name);
  }
  if (::renameat(dir, fresh.c_str(), dir, name.c_str()) < 0) return fail_errno("rename " + name);
  return {};
}

}  // namespace

bool is_near_boot(std::string_view path) {
  std::string one = std::string(path) + "/", other = std::string(kBootInside) + "/";
  return one.starts_with(other) || other.starts_with(one);
}

Result<SandboxFiles> SandboxFiles::open(const std::string& directory, std::string_view execd) {
  if (::mkdir(directory.c_str(), 0700) < 0 && errno != EEXIST) return fail_errno("mkdir " + directory);
  Fd fd = TRY(open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY));
  std::string name = kExecdPrefix + to_hex(sha256_digest(execd)).substr(0, kDigestDigits);
  struct stat there{};
  // One of a former user of the service could not be linked.
  bool complete = ::fstatat(fd.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                  static_cast<size_t>(there.st_size) == execd.size() && there.st_uid == ::geteuid();
  if (!complete) TRY(write_whole(fd.get(), name, execd, 0755));
  // Of earlier versions: containers that run one have a name of it of their own.
  for (const std::string& old : TRY(sys::names_in(directory))) {
    // And what a kill left half written: it may have variables of a sandbox in it.
    if ((old.starts_with(kExecdPrefix) && old != name) || old.ends_with(kUnfinished))
      ::unlinkat(fd.get(), old.c_str(), 0);
  }
  return SandboxFiles(directory, std::move(fd), std::move(name));
}

std::string SandboxFiles::socket(const std::string& handle, std::string_view name) const {
  return "/proc/self/fd/" + std::to_string(fd_.get()) + "/" + handle + "/" + std::string(name);
}

std::string SandboxFiles::boot_on_host(const std::string& handle) const {
  return directory_ + "/" + handle + "/boot";
}

Result<void> SandboxFiles::begin(const std::string& handle, std::string_view record) const {
  TRY(make_directory(fd_.get(), handle + "/boot", 0755));
  if (::linkat(fd_.get(), execd_.c_str(), fd_.get(), (handle + "/boot/execd").c_str(), 0) < 0)
    return fail_errno("link execd");
  return write_record(handle, record);
}

Result<Secrets> SandboxFiles::fill_secret(const std::string& handle, std::string_view record,
                                          Secret shown) const {
  TRY(begin(handle, record));
  Secrets out{.secret = knock::new_secret()};
  TRY(write_whole(fd_.get(), handle + "/secret", out.secret, 0600));
  if (shown == Secret::kept) {
    out.token = knock::new_secret();
    TRY(write_whole(fd_.get(), handle + "/token", out.token, 0600));
    return out;
  }
  // Whoever the image runs as; nobody else of the host can come here.
  TRY(write_whole(fd_.get(), handle + "/boot/secret", out.secret, 0644));
  return out;
}

Result<Listeners> SandboxFiles::fill(const std::string& handle, std::string_view record) const {
  TRY(begin(handle, record));
  Listeners out;
  out.api = TRY(io::listen_unix(socket(handle, "api"), kBacklog));
  out.control = TRY(io::listen_unix(socket(handle, "control"), kBacklog));
  out.ports = TRY(io::listen_unix(socket(handle, "ports"), kBacklog));
  out.hub = TRY(io::listen_unix(socket(handle, "boot/hub"), 1));
  // Whoever the image runs as; nobody else of the host can come here.
  if (::fchmodat(fd_.get(), (handle + "/boot/hub").c_str(), 0666, 0) < 0) return fail_errno("chmod hub");
  return out;
}

Result<Listeners> SandboxFiles::make(const std::string& handle, std::string_view record) const {
  if (!is_uuid(handle)) return fail(Code::invalid_argument, "no handle");
  TRY(make_directory(fd_.get(), handle, 0700));
  auto made = fill(handle, record);
  if (!made) (void)remove(handle);
  return made;
}

Result<Secrets> SandboxFiles::make_with_secret(const std::string& handle, std::string_view record,
                                               Secret secret) const {
  if (!is_uuid(handle)) return fail(Code::invalid_argument, "no handle");
  TRY(make_directory(fd_.get(), handle, 0700));
  auto made = fill_secret(handle, record, secret);
  if (!made) (void)remove(handle);
  return made;
}

Result<void> SandboxFiles::take_over(const std::string& handle, std::string_view record) const {
  if (!is_uuid(handle)) return fail(Code::invalid_argument, "no handle");
  auto made = make_directory(fd_.get(), handle, 0700);
  if (!made && made.error().code != Code::already_exists) return made;
  return write_record(handle, record);
}

bool SandboxFiles::is_taken_over(const std::string& handle) const {
  if (!is_uuid(handle)) return false;
  bool kept = ::faccessat(fd_.get(), (handle + "/record").c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  return kept && ::faccessat(fd_.get(), (handle + "/boot").c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0;
}

Result<std::string> SandboxFiles::read_secret_at(const std::string& handle, std::string_view name) const {
  if (!is_uuid(handle)) return fail(Code::not_found, "no handle");
  Fd file = TRY(open_beneath(fd_.get(), handle + std::string(name), O_RDONLY));
  std::string secret = TRY(read_all(file.get(), 2 * knock::kSecret));
  if (!knock::is_secret(secret)) return fail(Code::corrupt, "the secret of a sandbox makes no sense");
  return secret;
}

Result<std::string> SandboxFiles::read_secret(const std::string& handle) const {
  return read_secret_at(handle, "/secret");
}

Result<std::string> SandboxFiles::read_token(const std::string& handle) const {
  return read_secret_at(handle, "/token");
}

void SandboxFiles::close_boot(const std::string& handle) const {
  for (const char* name : {"/boot/hub", "/boot/secret"}) ::unlinkat(fd_.get(), (handle + name).c_str(), 0);
}

Result<void> SandboxFiles::remove(const std::string& handle) const {
  if (!is_uuid(handle)) return {};
  return sys::remove_from_trash(fd_.get(), handle);
}

Result<std::vector<std::string>> SandboxFiles::list() const {
  auto names = TRY(sys::names_in(directory_));
  std::erase_if(names, [](const std::string& name) { return !is_uuid(name); });
  return names;
}

Result<void> SandboxFiles::write_record(const std::string& handle, std::string_view record) const {
  if (!is_uuid(handle)) return fail(Code::not_found, "no handle");
  if (record.size() > runtime::kMaxRecord) return fail(Code::too_large, "the record is too large");
  return write_whole(fd_.get(), handle + "/record", record, 0600);
}

Result<std::string> SandboxFiles::read_record(const std::string& handle) const {
  if (!is_uuid(handle)) return fail(Code::not_found, "no handle");
  Fd file = TRY(open_beneath(fd_.get(), handle + "/record", O_RDONLY));
  return read_all(file.get(), runtime::kMaxRecord);
}

std::string SandboxFiles::boot_volume_prefix() const { return "opensandbox-" + execd_; }

Result<void> SandboxFiles::write_boot_volume(std::string_view name) const {
  return write_whole(fd_.get(), kBootVolume, name, 0600);
}

Result<std::string> SandboxFiles::read_boot_volume() const {
  constexpr size_t kMostName = 128;
  Fd file = TRY(open_beneath(fd_.get(), kBootVolume, O_RDONLY));
  return read_all(file.get(), kMostName);
}

Result<void> SandboxFiles::write_engine(std::string_view id) const {
  return write_whole(fd_.get(), kEngine, id, 0600);
}

Result<std::string> SandboxFiles::read_engine() const {
  constexpr size_t kMostId = 256;
  Fd file = TRY(open_beneath(fd_.get(), kEngine, O_RDONLY));
  return read_all(file.get(), kMostId);
}

Result<bool> SandboxFiles::has_snapshots() const {
  for (const std::string& name : TRY(sys::names_in(directory_))) {
    if (name.starts_with(kSnapshotPrefix)) return true;
  }
  return false;
}

Result<std::vector<Fd>> SandboxFiles::vital_files(const std::string& handle) const {
  if (!is_uuid(handle)) return fail(Code::not_found, "no handle");
  std::vector<Fd> out;
  for (const char* name : {"/secret", "/token", "/record"})
    out.push_back(TRY(open_beneath(fd_.get(), handle + name, O_RDONLY)));
  out.push_back(TRY(open_beneath(fd_.get(), handle, O_RDONLY | O_DIRECTORY)));
  out.push_back(TRY(open_at(fd_.get(), ".", O_RDONLY | O_DIRECTORY)));
  return out;
}

Result<std::vector<Fd>> SandboxFiles::vital_files() const {
  std::vector<Fd> out;
  out.push_back(TRY(open_beneath(fd_.get(), kBootVolume, O_RDONLY)));
  out.push_back(TRY(open_at(fd_.get(), ".", O_RDONLY | O_DIRECTORY)));
  return out;
}

void SandboxFiles::distrust_boot_volume(std::string_view name) const {
  if (read_boot_volume().value_or("") == name) ::unlinkat(fd_.get(), kBootVolume, 0);
}

Result<void> SandboxFiles::write_snapshot_record(const std::string& snapshot, std::string_view record) const {
  if (!is_uuid(snapshot)) return fail(Code::invalid_argument, "no id");
  return write_whole(fd_.get(), kSnapshotPrefix + snapshot, record, 0600);
}

Result<std::string> SandboxFiles::read_snapshot_record(const std::string& snapshot) const {
  if (!is_uuid(snapshot)) return fail(Code::not_found, "no id");
  Fd file = TRY(open_beneath(fd_.get(), kSnapshotPrefix + snapshot, O_RDONLY));
  return read_all(file.get(), runtime::kMaxRecord);
}

Result<void> SandboxFiles::remove_snapshot_record(const std::string& snapshot) const {
  if (!is_uuid(snapshot)) return {};
  if (::unlinkat(fd_.get(), (kSnapshotPrefix + snapshot).c_str(), 0) < 0 && errno != ENOENT)
    return fail_errno("remove what is kept of a snapshot");
  return {};
}

}  // namespace osb::docker
