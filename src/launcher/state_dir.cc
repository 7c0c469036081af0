#include "launcher/state_dir.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/ids.h"
#include "launcher/database_files.h"
#include "launcher/secret.h"
#include "launcher/snapshot_store.h"
#include "sys/caps.h"
#include "sys/directory.h"
#include "sys/file_lock.h"
#include "sys/process.h"
#include "sys/remove_tree.h"

namespace osb::launcher {
namespace {

constexpr size_t kFirstLowers = 8;  // what most images need; more are made when a plan has more
constexpr mode_t kRunMode = 02750;  // sockets made in there belong to its group
constexpr int kBacklog = 512;
constexpr size_t kPatientTrash = 2048;
constexpr std::chrono::milliseconds kTrashTurn(50), kTrashWork(2000);
constexpr size_t kMostDisks = 64;
constexpr char kImageAttribute[] = "trusted.opensandbox.image";

// A directory of ours in a place where others may write too: whatever they may have put under its name is not
// ours.
Result<void> make_dir_among_others(const std::string& path, mode_t mode, gid_t gid) {
  if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) return fail_errno("make " + path);
  Fd dir = TRY(open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat info{};
  if (::fstat(dir.get(), &info) < 0 || info.st_uid != 0)
    return fail(Code::permission_denied, path + " is somebody else's");
  if (::fchown(dir.get(), 0, gid) < 0 || ::fchmod(dir.get(), mode) < 0) return fail_errno("own " + path);
  return {};
}

// Where a link to the sockets leads, if some are there: sandboxes that run listen on them.
std::string sockets_in_use(const std::string& link) {
  char target[256];
  ssize_t n = ::readlink(link.c_str(), target, sizeof target);
  if (n <= 0 || n == sizeof target || target[0] != '/') return "";
  std::string path(target, static_cast<size_t>(n));
  auto dir = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return dir && !sys::is_empty_directory(dir->get()).value_or(true) ? path : "";
}

// Sockets are for this boot only: they go where the host keeps such things in memory, and a link leads there.
Result<void> make_run_dir(const std::string& path, const std::string& name, const Settings& settings) {
  gid_t gid = settings.service_gid;
  struct stat info{};
  bool is_directory = ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (std::string used = sockets_in_use(path); !used.empty()) {
    if (make_dir_among_others(used, kRunMode, gid)) return {};
  }
  std::vector<std::string> places = {"/run", "/dev/shm"};
  if (!settings.runtime_dir.empty()) places.insert(places.begin(), settings.runtime_dir);
  for (const std::string& memory : places) {
    struct statfs kind{};
    bool kept_for_us = memory == settings.runtime_dir;  // whatever it is on
    if (is_directory || ::statfs(memory.c_str(), &kind) < 0) continue;
    if (kind.f_type != TMPFS_MAGIC && !kept_for_us) continue;
    std::string target = memory + "/" + name;
    if (!make_dir_among_others(target, kRunMode, gid)) continue;
    if (::unlink(path.c_str()) < 0 && errno != ENOENT) return fail_errno("replace " + path);
    if (::symlink(target.c_str(), path.c_str()) < 0) return fail_errno("link " + path);
    return {};
  }
  return sys::ensure_directory(path, kRunMode, 0, gid);
}

// A directory above the state that the service's user may not pass would show only as a server that never
// comes up.
Result<void> check_reachable(const std::string& path, uid_t uid, gid_t gid) {
  ::setfsgid(gid);
  ::setfsuid(uid);
  auto opened = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  ::setfsuid(0);
  ::setfsgid(0);
  if (opened) return {};
  return fail(Code::permission_denied, "the service's user (uid " + std::to_string(uid) + ") cannot reach " +
                                           path +
                                           "; let others search every directory above it (chmod o+x), or set "
                                           "native.state_dir to another place");
}

Result<Fd> create_layers(int parent, const std::string& name, uint32_t first_id, const std::string& image,
                         const std::vector<std::string>& layers, const std::string& snapshots) {
  if (::mkdirat(parent, name.c_str(), 0700) < 0) return fail_errno("make the sandbox's directory");
  Fd dir = TRY(open_beneath(parent, name, O_RDONLY | O_DIRECTORY));
  // Before anybody opens a layer of it: who removes images looks here (image/store.h).
  if (!image.empty() && ::fsetxattr(dir.get(), kImageAttribute, image.data(), image.size(), 0) < 0)
    return fail_errno("note the sandbox's image");
  // Likewise: who removes layers of snapshots reads it.
  if (!snapshots.empty()) {
    Fd note = TRY(open_beneath(dir.get(), kLayersNote, O_WRONLY | O_CREAT | O_EXCL, 0600));
    TRY(in_context("note the sandbox's layers", write_all(note.get(), snapshots)));
  }
  for (const std::string& layer : layers) {
    for (const char* part : {".upper", ".work"}) {
      std::string child = layer + part;
      if (::mkdirat(dir.get(), child.c_str(), 0755) < 0 ||
          ::fchownat(dir.get(), child.c_str(), first_id, first_id, AT_SYMLINK_NOFOLLOW) < 0) {
        return fail_errno("make " + child);
      }
    }
  }
  // Last, because the owner is how a later launcher learns which range is taken.
  if (::fchown(dir.get(), first_id, first_id) < 0) return fail_errno("own the sandbox's directory");
  return dir;
}

// What is kept in there from sandbox to sandbox serves this boot only: nobody waited until it was on the
// disk, so after a power cut it may be anything.
Result<void> keep_for_this_boot(int dir) {
  constexpr char kNote[] = "boot";
  std::string boot = TRY(sys::boot_id());
  std::string noted;
  if (auto note = open_beneath(dir, kNote, O_RDONLY)) noted = read_all(note->get(), 64).value_or("");
  for (const std::string& name : TRY(sys::names_in(dir))) {
    bool is_whole = noted == boot && name.ends_with(".img");
    if (name != kNote && !is_whole) ::unlinkat(dir, name.c_str(), 0);
  }
  if (noted == boot) return {};
  // Without it everything is made anew once more; a full disk must not keep the service down for that.
  auto note = open_beneath(dir, kNote, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (note) (void)write_all(note->get(), boot);
  return {};
}

}  // namespace

Result<StateDir> StateDir::open(const Settings& settings) {
  StateDir dir(settings);
  uid_t uid = settings.service_uid;
  gid_t gid = settings.service_gid;
  dir.identity_ = TRY(read_identity(settings.state_dir));
  dir.lock_ = TRY(open_at(AT_FDCWD, dir.path("lock"), O_RDWR | O_CREAT, 0600));
  if (!sys::lock_soon(dir.lock_.get())) {
    return fail(Code::already_exists,
                "another service uses " + settings.state_dir + "; stop it, or set native.state_dir");
  }
  TRY(sys::ensure_directory(dir.path(state::kSandboxes), 0700, 0, 0));
  TRY(sys::ensure_directory(dir.path(state::kSpares), 0700, 0, 0));
  TRY(sys::ensure_directory(dir.path(state::kTrash), 0700, 0, 0));
  TRY(sys::ensure_directory(dir.path(state::kImages), 0700, 0, 0));
  TRY(sys::ensure_directory(dir.path(state::kMount), 0700, 0, 0));
  TRY(sys::ensure_directory(dir.path(state::kDisks), 0700, 0, 0));
  TRY(sys::ensure_directory(dir.path(state::kLowers), 0700, 0, 0));
  TRY(dir.ensure_lowers(kFirstLowers));
  TRY(make_run_dir(dir.path(state::kRun), dir.identity_.group, settings));
  TRY(sys::ensure_directory(dir.path(state::kDatabase), 0700, uid, gid));
  TRY(sys::ensure_directory(dir.path(state::kCatalog), 0750, 0, gid));
  Fd top = TRY(open_at(AT_FDCWD, settings.state_dir, O_RDONLY | O_DIRECTORY));
  TRY(ensure_secret(top.get(), state::kSecret, uid, gid));
  TRY(check_reachable(dir.path(state::kDatabase), uid, gid));
  Fd database = TRY(open_at(AT_FDCWD, dir.path(state::kDatabase), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  Fd sockets = TRY(open_at(AT_FDCWD, dir.path(state::kRun), O_RDONLY | O_DIRECTORY));
  if (!settings.rootless) {
    TRY(own_database_files(database.get(), uid, gid));
    TRY(own_sockets(sockets.get(), gid));
  }
  dir.sandboxes_ = TRY(open_at(AT_FDCWD, dir.path(state::kSandboxes), O_RDONLY | O_DIRECTORY));
  dir.spares_ = TRY(open_at(AT_FDCWD, dir.path(state::kSpares), O_RDONLY | O_DIRECTORY));
  sys::spread_subdirectories(dir.sandboxes_.get());
  sys::spread_subdirectories(dir.spares_.get());
  dir.disks_ = TRY(open_at(AT_FDCWD, dir.path(state::kDisks), O_RDONLY | O_DIRECTORY));
  TRY(keep_for_this_boot(dir.disks_.get()));
  dir.trash_ = TRY(open_at(AT_FDCWD, dir.path(state::kTrash), O_RDONLY | O_DIRECTORY));
  for (const std::string& name : TRY(sys::names_in(dir.spares_.get()))) TRY(dir.discard_spare(name));
  return dir;
}

Result<void> StateDir::ensure_lowers(size_t count) {
  for (; lowers_ < count; ++lowers_) {
    std::string slot = path(state::kLowers) + "/" + std::to_string(lowers_);
    if (::mkdir(slot.c_str(), 0700) < 0 && errno != EEXIST) return fail_errno("make " + slot);
  }
  return {};
}

std::string StateDir::upper(const std::string& id, const std::string& layer) const {
  return std::string(state::kSandboxes) + "/" + id + "/" + layer + ".upper";
}
std::string StateDir::work(const std::string& id, const std::string& layer) const {
  return std::string(state::kSandboxes) + "/" + id + "/" + layer + ".work";
}

std::string StateDir::blank_disk(int64_t bytes, const std::string& kind) const {
  // Clients choose the sizes: so many are kept, then all are made anew.
  std::vector<std::string> names = sys::names_in(disks_.get()).value_or(std::vector<std::string>());
  std::string wanted = kind + std::to_string(bytes) + ".img";
  if (names.size() >= kMostDisks && std::find(names.begin(), names.end(), wanted) == names.end()) {
    for (const std::string& name : names) {
      if (name.ends_with(".img")) ::unlinkat(disks_.get(), name.c_str(), 0);
    }
  }
  return std::string(state::kDisks) + "/" + wanted;
}

Result<Fd> StateDir::create_sandbox(const std::string& id, uint32_t first_id, const std::string& image,
                                    const std::vector<std::string>& layers,
                                    const std::string& snapshots) const {
  return create_layers(sandboxes_.get(), id, first_id, image, layers, snapshots);
}

Result<Fd> StateDir::open_sandbox(const std::string& id) const {
  return open_beneath(sandboxes_.get(), id, O_RDONLY | O_DIRECTORY);
}

Result<Fd> StateDir::create_spare(const std::string& name, uint32_t first_id, const std::string& image,
                                  const std::vector<std::string>& layers,
                                  const std::string& snapshots) const {
  return create_layers(spares_.get(), name, first_id, image, layers, snapshots);
}

Result<void> StateDir::spare_to_sandbox(const std::string& name, const std::string& id) const {
  if (::renameat2(spares_.get(), name.c_str(), sandboxes_.get(), id.c_str(), RENAME_NOREPLACE) < 0)
    return fail_errno("use a spare for the sandbox");
  return {};
}

Result<void> StateDir::sandbox_to_spare(const std::string& id, const std::string& name) const {
  TRY(remove_sockets(id));
  if (::renameat2(sandboxes_.get(), id.c_str(), spares_.get(), name.c_str(), RENAME_NOREPLACE) < 0)
    return fail_errno("keep the sandbox's directory as a spare");
  return {};
}

// A fresh name in the trash: the same id may have been there before.
Result<void> StateDir::move_to_trash(int from, const std::string& name) const {
  if (::renameat(from, name.c_str(), trash_.get(), new_hex_id().c_str()) == 0) return {};
  if (errno != ENOENT) return fail_errno("move files of a sandbox to the trash");
  // Nothing is there, which is fine; or somebody has taken the trash away, which is not.
  struct stat info{};
  if (::fstatat(from, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) return {};
  return fail(Code::internal, "move files of a sandbox to the trash: " + path(state::kTrash) +
                                  " was removed; restart the service, which makes it again");
}

Result<void> StateDir::discard_spare(const std::string& name) const {
  return move_to_trash(spares_.get(), name);
}

Result<uint32_t> StateDir::range_of(const std::string& id) const {
  struct stat info{};
  if (::fstatat(sandboxes_.get(), id.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0)
    return fail_errno("sandbox " + id);
  return info.st_uid;
}

Result<std::vector<std::string>> StateDir::list() const {
  std::vector<std::string> ids = TRY(sys::names_in(sandboxes_.get()));
  std::sort(ids.begin(), ids.end());
  return ids;
}

Result<void> StateDir::remove_sockets(const std::string& id) const {
  for (const char* suffix : {".api", ".control"}) {
    std::string socket = path(state::kRun) + "/" + id + suffix;
    if (::unlink(socket.c_str()) < 0 && errno != ENOENT) return fail_errno("remove " + socket);
  }
  return {};
}

Result<void> StateDir::discard(const std::string& id) const {
  TRY(remove_sockets(id));
  return move_to_trash(sandboxes_.get(), id);
}

Result<Fd> StateDir::listen(const std::string& id, const char* suffix) const {
  std::string name = path(state::kRun) + "/" + id + suffix;
  struct sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) {
    return fail(Code::invalid_argument, "native.state_dir is too long for unix sockets: " + name);
  }
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail_errno("unix socket");
  if (::bind(socket.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof address) < 0)
    return fail_errno("bind " + name);
  // The group comes from the directory. Nobody can connect before it listens.
  if (::chmod(name.c_str(), 0660) < 0) return fail_errno("own " + name);
  if (::listen(socket.get(), kBacklog) < 0) return fail_errno("listen " + name);
  return socket;
}

void StateDir::remove_socket(const std::string& id, const char* suffix) const {
  (void)::unlink((path(state::kRun) + "/" + id + suffix).c_str());
}

void StateDir::leave() const {
  auto spares = sys::names_in(spares_.get()).value_or(std::vector<std::string>());
  for (const std::string& name : spares) (void)sys::remove_from_trash(spares_.get(), name);
  char target[256];
  ssize_t n = ::readlink(path(state::kRun).c_str(), target, sizeof target - 1);
  if (n > 0) (void)::rmdir(std::string(target, static_cast<size_t>(n)).c_str());
}

bool StateDir::trash_is_empty() const { return sys::is_empty_directory(trash_.get()).value_or(true); }

void StateDir::run_trash_worker() const {
  // It may outlive the launcher, whose lock and listeners must not live as long.
  auto trash = static_cast<unsigned>(trash_.get());
  ::syscall(SYS_close_range, 3, trash - 1, 0);
  ::syscall(SYS_close_range, trash + 1, ~0U, 0);
  // Whoever waits for a sandbox goes first, as long as what waits here is little.
  std::vector<std::string> names = sys::names_in(trash_.get()).value_or(std::vector<std::string>());
  ::setpriority(PRIO_PROCESS, 0, names.size() < kPatientTrash ? 5 : 0);
  // A sandbox wrote these trees. Nothing of it runs any more, and the walk follows no link; still, rights
  // that removing files does not take are dropped first.
  if (sys::set_capabilities({CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER}) < 0) ::_exit(1);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // By turns: what one sandbox wrote may take minutes, and others wait for their space. The next worker looks
  // at the backlog anew.
  auto end = std::chrono::steady_clock::now() + kTrashWork;
  bool progress = false, left = true;
  while (left && std::chrono::steady_clock::now() < end) {
    left = false;
    for (const std::string& name : names) {
      auto gone = sys::remove_from_trash(trash_.get(), name, kTrashTurn);
      progress |= gone.has_value();
      left |= gone && !*gone;
    }
    names = sys::names_in(trash_.get()).value_or(std::vector<std::string>());
  }
  ::_exit(progress ? 0 : 1);
}

}  // namespace osb::launcher
