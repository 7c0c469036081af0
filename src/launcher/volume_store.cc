#include "launcher/volume_store.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/cleanup.h"
#include "base/ids.h"
#include "base/limit_bounds.h"
#include "base/log.h"
#include "base/strings.h"
#include "launcher/disk.h"
#include "sys/directory.h"
#include "sys/mount.h"

namespace osb::launcher {
namespace {

constexpr char kManifest[] = "manifest", kFiles[] = "files", kDisk[] = "disk.img", kNote[] = "volumes";
constexpr int64_t kLeastSize = 16 << 20;
constexpr char kHalfMade[] = ".making-";  // no volume or owner has such a name
constexpr size_t kMaxNote = 256 * 1024;

int64_t now() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
}

Result<void> to_disk(int fd) {
  if (::fsync(fd) < 0) return fail_errno("bring a volume to the disk");
  return {};
}

bool is_missing(const Error& error) { return error.code == Code::not_found; }

}  // namespace

Result<VolumeStore> VolumeStore::open(const Settings& settings, const StateDir& state) {
  VolumeStore store(settings, state);
  TRY(sys::ensure_directory(state.path(state::kVolumes), 0700, 0, 0));
  store.volumes_ = TRY(open_at(AT_FDCWD, state.path(state::kVolumes), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  store.trash_ = TRY(open_at(AT_FDCWD, state.path(state::kTrash), O_RDONLY | O_DIRECTORY));
  // What cannot be swept now is found by the next start; volumes are there all the same.
  if (auto swept = store.sweep(); !swept)
    log::warn("cannot look through the volumes", {{"error", swept.error().message}});
  return store;
}

// What was being made when a launcher ended, and what should have gone with its last sandbox.
Result<void> VolumeStore::sweep() const {
  std::vector<std::string> ephemeral;
  for (const std::string& owner : TRY(sys::names_in(volumes_.get()))) {
    if (owner.starts_with(kHalfMade)) {
      TRY(to_trash(volumes_.get(), owner));
      continue;
    }
    Fd directory = TRY(open_beneath(volumes_.get(), owner, O_RDONLY | O_DIRECTORY));
    for (const std::string& name : TRY(sys::names_in(directory.get()))) {
      auto manifest = find({.owner = owner, .name = name});
      if (manifest && manifest->ephemeral) ephemeral.push_back(owner + "/" + name);
    }
  }
  release(ephemeral);
  return {};
}

Result<VolumeManifest> VolumeStore::find(const VolumePath& path) const {
  auto file = open_beneath(volumes_.get(), path.volume() + "/" + kManifest, O_RDONLY);
  if (!file && is_missing(file.error())) return fail(Code::not_found, "there is no volume of this name");
  return decode_volume_manifest(TRY(read_all(TRY(std::move(file)).get(), kMaxVolumeManifest)));
}

Result<void> VolumeStore::check(const VolumeManifest& wanted) const {
  if (!wanted.size_bytes) return {};
  if (*wanted.size_bytes < kLeastSize || *wanted.size_bytes > limit_bounds::kMostDiskBytes)
    return fail(Code::permission_denied, "refused: the size is out of range");
  const char* why =
      settings_->rootless ? "a service without root cannot limit the size of a volume" : disk_obstacle();
  if (why != nullptr) return fail(Code::unsupported, why);
  return {};
}

// Whole and on the disk before it has its name: it is meant to outlive the host's next crash.
Result<void> VolumeStore::make(const VolumePath& path, VolumeManifest manifest) const {
  manifest.created = now();
  std::string staged = kHalfMade + new_hex_id();
  if (::mkdirat(volumes_.get(), staged.c_str(), 0700) < 0) return fail_errno("make a volume's directory");
  Cleanup undo;
  undo.push([&] { (void)to_trash(volumes_.get(), staged); });
  Fd directory = TRY(open_beneath(volumes_.get(), staged, O_RDONLY | O_DIRECTORY));
  TRY(in_context("make a volume", fill(directory.get(), staged, manifest)));
  Fd file = TRY(open_beneath(directory.get(), kManifest, O_WRONLY | O_CREAT | O_EXCL, 0600));
  TRY(write_all(file.get(), encode(manifest)));
  TRY(to_disk(file.get()));
  TRY(to_disk(directory.get()));
  if (::mkdirat(volumes_.get(), path.owner.c_str(), 0700) < 0 && errno != EEXIST)
    return fail_errno("make the directory of a volume's owner");
  Fd parent = TRY(open_beneath(volumes_.get(), path.owner, O_RDONLY | O_DIRECTORY));
  if (TRY(sys::names_in(parent.get())).size() >= kMostVolumes)
    return fail(Code::exhausted, "there are " + std::to_string(kMostVolumes) +
                                     " volumes, the most that one owner can have; remove some");
  if (::renameat2(volumes_.get(), staged.c_str(), parent.get(), path.name.c_str(), RENAME_NOREPLACE) < 0)
    return fail_errno("give a volume its name");
  undo.release();
  TRY(to_disk(parent.get()));
  return to_disk(volumes_.get());
}

// The place for its files, in a directory that is `name` below that of all volumes.
Result<void> VolumeStore::fill(int directory, const std::string& name, const VolumeManifest& manifest) const {
  uint32_t owner = settings_->rootless ? 0 : kFirstVolumeId;
  if (!manifest.size_bytes) {
    if (::mkdirat(directory, kFiles, 0755) < 0 ||
        ::fchownat(directory, kFiles, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
      return fail_errno("make the directory of its files");
    return {};
  }
  Fd image = TRY(open_beneath(directory, kDisk, O_RDWR | O_CREAT | O_EXCL, 0600));
  std::string blank = state_->path(state_->blank_disk(*manifest.size_bytes, "volume-").c_str());
  std::string scratch = state_->path(state::kDisks) + "/" + name;
  LastingDiskOrder order{
      .bytes = *manifest.size_bytes, .blank = blank.c_str(), .scratch = scratch.c_str(), .owner = owner};
  if (int status = fill_lasting_disk(image.get(), order); status < 0)
    return fail_errno("format its disk", -status);
  return to_disk(image.get());
}

// Seen through a mount of its directory alone: whoever asks which file is behind a loop device learns no name
// of a volume.
Result<Fd> VolumeStore::mount_disk(const VolumePath& path) const {
  Fd directory = TRY(open_beneath(volumes_.get(), path.volume(), O_PATH | O_DIRECTORY));
  Fd shown(sys::clone_mount(directory.get(), ""));
  if (!shown.valid()) return fail_errno("copy the mount of a volume's directory", -shown.get());
  Fd image = TRY(open_beneath(shown.get(), kDisk, O_RDWR));
  Fd disk(mount_lasting_disk(image.get()));
  if (!disk.valid()) return fail_errno("mount the disk of a volume", -disk.get());
  return disk;
}

// The top of its files, wherever they are.
Result<Fd> VolumeStore::open_files(const VolumePath& path) const {
  if (TRY(find(path)).size_bytes) return mount_disk(path);
  return open_beneath(volumes_.get(), path.volume() + "/" + kFiles, O_PATH | O_DIRECTORY);
}

Result<void> VolumeStore::make_directories(const VolumePath& path) const {
  // A disk is mounted as long as its top is open.
  Fd top = TRY(open_files(path));
  TRY(open_below(*settings_, TRY(open_at(top.get(), ".", O_PATH | O_DIRECTORY)), path.below, Missing::made));
  return {};
}

Result<Fd> VolumeStore::mount(const VolumePath& path) const {
  bool has_disk = TRY(find(path)).size_bytes.has_value();
  Fd top = TRY(open_files(path));
  if (has_disk && path.below.empty()) return top;
  Fd part = TRY(open_at(top.get(), ".", O_PATH | O_DIRECTORY));
  if (!path.below.empty()) part = TRY(open_below(*settings_, std::move(part), path.below, Missing::refused));
  int mount = sys::clone_mount(part.get(), "");
  if (mount == -EINVAL && has_disk)
    return fail(
        Code::unsupported,
        "this kernel cannot mount a part of a volume that has a size (Linux 6.15 can); mount all of it");
  if (mount < 0) return fail_errno("copy the mount of a volume", -mount);
  return Fd(mount);
}

Result<void> VolumeStore::note(const Plan& plan) const {
  std::set<std::string> used;
  for (const Step& step : plan.steps) {
    if (step.kind != Step::Kind::volume) continue;
    if (auto path = parse_volume_path(step.source)) used.insert(path->volume());
  }
  if (used.empty()) return {};
  std::string text;
  for (const std::string& volume : used) text += volume + "\n";
  Fd directory = TRY(state_->open_sandbox(plan.id));
  return in_context("note the sandbox's volumes",
                    write_file_at(directory.get(), kNote, text, O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
}

void VolumeStore::forget_note(int directory) { ::unlinkat(directory, kNote, 0); }

std::vector<std::string> VolumeStore::used_by(const std::string& sandbox) const {
  auto directory = state_->open_sandbox(sandbox);
  if (!directory) return {};
  auto note = open_beneath(directory->get(), kNote, O_RDONLY);
  auto text = note ? read_all(note->get(), kMaxNote) : Result<std::string>("");
  std::vector<std::string> volumes;
  if (!text) return volumes;
  for (std::string_view line : split(*text, '\n')) {
    if (!line.empty()) volumes.emplace_back(line);
  }
  return volumes;
}

Result<uint32_t> VolumeStore::users(const std::string& volume) const {
  uint32_t count = 0;
  for (const std::string& sandbox : TRY(state_->list())) {
    auto used = used_by(sandbox);
    count += std::ranges::find(used, volume) != used.end() ? 1 : 0;
  }
  return count;
}

Result<std::vector<ListedVolume>> VolumeStore::list(const std::string& owner, const std::string& after,
                                                    size_t most) const {
  auto directory = open_beneath(volumes_.get(), owner, O_RDONLY | O_DIRECTORY);
  if (!directory && is_missing(directory.error())) return std::vector<ListedVolume>();
  if (!directory) return std::unexpected(std::move(directory.error()));
  std::vector<std::string> names = TRY(sys::names_in(directory->get()));
  std::ranges::sort(names);
  std::vector<ListedVolume> found;
  for (const std::string& name : names) {
    if (name <= after || !is_volume_name(name)) continue;
    if (found.size() == most) break;
    // One whose manifest cannot be read is listed: somebody may want to remove it.
    auto manifest = find({.owner = owner, .name = name});
    found.push_back({name, manifest.value_or(VolumeManifest()), 0});
  }
  for (const std::string& sandbox : TRY(state_->list())) {
    for (const std::string& used : used_by(sandbox)) {
      for (ListedVolume& one : found) one.users += used == owner + "/" + one.name ? 1 : 0;
    }
  }
  return found;
}

Result<void> VolumeStore::drop(const VolumePath& path) const {
  if (auto found = find(path); !found && is_missing(found.error()))
    return std::unexpected(std::move(found.error()));
  if (uint32_t count = TRY(users(path.volume())); count > 0)
    return fail(Code::wrong_state,
                std::to_string(count) + (count == 1 ? " sandbox uses it" : " sandboxes use it"));
  Fd parent = TRY(open_beneath(volumes_.get(), path.owner, O_RDONLY | O_DIRECTORY));
  return to_trash(parent.get(), path.name);
}

bool VolumeStore::release(const std::vector<std::string>& volumes) const {
  bool dropped = false;
  for (const std::string& volume : volumes) {
    auto path = parse_volume_path(volume);
    auto manifest = path ? find(*path) : Result<VolumeManifest>(VolumeManifest());
    if (!manifest || !manifest->ephemeral) continue;
    auto gone = drop(*path);
    dropped |= gone.has_value();
    if (!gone && gone.error().code != Code::wrong_state)
      log::error("cannot remove a volume with its last sandbox", {{"error", gone.error().message}});
  }
  return dropped;
}

Result<void> VolumeStore::to_trash(int from, const std::string& name) const {
  if (::renameat(from, name.c_str(), trash_.get(), new_hex_id().c_str()) < 0)
    return fail_errno("move a volume to the trash");
  return {};
}

}  // namespace osb::launcher
