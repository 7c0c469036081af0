#include "launcher/snapshot_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/hex.h"
#include "base/ids.h"
#include "base/sha256.h"
#include "launcher/records.h"
#include "launcher/settings.h"
#include "launcher/snapshot_workers.h"
#include "sys/directory.h"
#include "sys/process.h"

namespace osb::launcher {
namespace {

constexpr char kManifest[] = "manifest", kNextManifest[] = "manifest.next";

Result<Fd> make_directory(const std::string& path) {
  TRY(sys::ensure_directory(path, 0700, 0, 0));
  return open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<Manifest> read_manifest(int dir, const std::string& name) {
  Fd file = TRY(open_beneath(dir, name, O_RDONLY));
  return decode_manifest(TRY(read_all(file.get(), kMaxManifest)));
}

// Whole or not at all for the next process of this boot; keep() brings it to the disk.
Result<void> write_manifest(int dir, const Manifest& manifest) {
  Fd file = TRY(open_beneath(dir, kNextManifest, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  TRY(write_all(file.get(), encode(manifest)));
  if (::renameat(dir, kNextManifest, dir, kManifest) < 0) return fail_errno("place a snapshot's manifest");
  return {};
}

bool has_new_layers(const Manifest& manifest) {
  return std::ranges::any_of(manifest.layers, [](const SnapshotLayer& layer) { return layer.is_new; });
}

bool exists(int dir, const std::string& name) {
  struct stat info{};
  return ::fstatat(dir, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

// Keeping and sweeping are done by processes of their own, one at a time. Opened anew by each: a lock belongs
// to an opened file, and children share those of their parent.
Result<Fd> take_turn(const std::string& state_dir) {
  Fd lock = TRY(open_at(AT_FDCWD, state_dir + "/" + state::kSnapshots + "/lock", O_RDWR | O_CREAT, 0600));
  if (::flock(lock.get(), LOCK_EX) < 0) return fail_errno("lock the snapshots");
  return lock;
}

// Layers that directories (of sandboxes, of spares) say they use.
Result<void> add_notes(const std::string& directory, std::set<std::string>& used) {
  auto dir = open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().code == Code::not_found) return {};
  if (!dir) return std::unexpected(std::move(dir.error()));
  for (const std::string& name : TRY(sys::names_in(dir->get()))) {
    auto note = read_manifest(dir->get(), name + "/" + kLayersNote);
    if (!note && note.error().code == Code::not_found) continue;
    if (!note) return std::unexpected(std::move(note.error()));
    for (const SnapshotLayer& layer : note->layers) used.insert(layer.digest);
  }
  return {};
}

Result<void> add_manifests(int dir, std::set<std::string>& used) {
  for (const std::string& name : TRY(sys::names_in(dir))) {
    auto manifest = read_manifest(dir, name + "/" + kManifest);
    if (!manifest && manifest.error().code == Code::not_found) continue;
    if (!manifest) return std::unexpected(std::move(manifest.error()));
    for (const SnapshotLayer& layer : manifest->layers) used.insert(layer.digest);
  }
  return {};
}

// Of images that were made of snapshots (image/store.h): one file each.
Result<void> add_images(int dir, std::set<std::string>& used) {
  for (const std::string& name : TRY(sys::names_in(dir))) {
    if (!is_hex_digest(name)) continue;  // being written, under the lock that the caller has: by nobody alive
    auto pinned = read_manifest(dir, name);
    if (!pinned) return std::unexpected(std::move(pinned.error()));
    for (const SnapshotLayer& layer : pinned->layers) used.insert(layer.digest);
  }
  return {};
}

}  // namespace

Result<SnapshotStore> SnapshotStore::open(const std::string& state_dir) {
  SnapshotStore store(state_dir);
  std::string top = state_dir + "/" + state::kSnapshots;
  TRY(make_directory(top));
  store.layers_ = TRY(make_directory(state_dir + "/" + state::kSnapshotLayers));
  store.kept_ = TRY(make_directory(top + "/kept"));
  store.staging_ = TRY(make_directory(top + "/staging"));
  store.images_ = TRY(make_directory(top + "/images"));
  store.trash_ = TRY(open_at(AT_FDCWD, state_dir + "/" + state::kTrash, O_RDONLY | O_DIRECTORY));
  TRY(open_at(AT_FDCWD, top + "/lock", O_RDWR | O_CREAT, 0600));
  sys::spread_subdirectories(store.staging_.get());
  std::string boot = TRY(sys::boot_id());
  for (const std::string& name : TRY(sys::names_in(store.staging_.get()))) {
    auto manifest = store.find_staged(name);
    if (!manifest || manifest->boot != boot) TRY(store.to_trash(store.staging_.get(), name));
  }
  return store;
}

Result<FoundSnapshot> SnapshotStore::find(const std::string& id, Lasting lasting) const {
  int place = kept_.get();
  auto manifest = read_manifest(place, id + "/" + kManifest);
  if (!manifest && manifest.error().code == Code::not_found && lasting == Lasting::this_boot) {
    place = staging_.get();
    manifest = find_staged(id);
    if (manifest && has_new_layers(*manifest)) return fail(Code::not_found, "the snapshot is not placed yet");
  }
  if (!manifest) return std::unexpected(std::move(manifest.error()));
  Fd directory = TRY(open_beneath(place, id, O_RDONLY | O_DIRECTORY));
  return FoundSnapshot{std::move(*manifest), TRY(read_record(directory.get()))};
}

Result<Manifest> SnapshotStore::find_staged(const std::string& id) const {
  return read_manifest(staging_.get(), id + "/" + kManifest);
}

Result<std::vector<std::string>> SnapshotStore::list() const {
  std::vector<std::string> ids = TRY(sys::names_in(kept_.get()));
  for (const std::string& id : TRY(sys::names_in(staging_.get()))) {
    if (find_staged(id)) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Result<Fd> SnapshotStore::stage(const std::string& id) const {
  if (exists(kept_.get(), id) || exists(staging_.get(), id))
    return fail(Code::already_exists, "there is a snapshot " + id);
  if (::mkdirat(staging_.get(), id.c_str(), 0700) < 0) return fail_errno("make a snapshot's directory");
  return open_beneath(staging_.get(), id, O_RDONLY | O_DIRECTORY);
}

Result<void> SnapshotStore::finish_staging(int staged, const Manifest& manifest,
                                           std::string_view record) const {
  TRY(write_record(staged, record));
  return write_manifest(staged, manifest);
}

// Whether the layer of that name holds the same bytes: its digest does not cover them.
Result<bool> SnapshotStore::is_same(int staged, const SnapshotLayer& layer) const {
  Fd one = TRY(open_beneath(staged, layer.overlay, O_RDONLY | O_DIRECTORY));
  Fd other = TRY(open_beneath(layers_.get(), layer.digest, O_RDONLY | O_DIRECTORY));
  return same_layers(one.get(), other.get(), state_dir_ + "/" + state::kMount);
}

// Another tree of the same shape may have the name: then both stay, and the new one gets another name. That
// is written down before the layer moves, or a second attempt would take the other tree for this one.
Result<void> SnapshotStore::name_layers(int staged, Manifest& manifest) const {
  bool renamed = false;
  for (SnapshotLayer& layer : manifest.layers) {
    bool collides = layer.is_new && exists(staged, layer.overlay) && exists(layers_.get(), layer.digest);
    if (!collides || TRY(is_same(staged, layer))) continue;
    layer.digest = to_hex(sha256_digest(layer.digest + new_hex_id()));
    renamed = true;
  }
  return renamed ? write_manifest(staged, manifest) : Result<void>();
}

Result<void> SnapshotStore::place_layer(int staged, const SnapshotLayer& layer) const {
  bool is_there = exists(layers_.get(), layer.digest);
  // Placed already, by a process that was killed before it said so.
  if (!exists(staged, layer.overlay))
    return is_there ? Result<void>() : fail(Code::corrupt, "a layer of the snapshot is missing");
  if (is_there) return to_trash(staged, layer.overlay);
  if (::renameat(staged, layer.overlay.c_str(), layers_.get(), layer.digest.c_str()) < 0)
    return fail_errno("place a layer of the snapshot");
  return {};
}

// Layers get their place before anything is on the disk: the staged manifest names them, and is of no use
// after this boot. So there are two commits to wait for, one for all files and one for the rename that makes
// it count.
Result<void> SnapshotStore::keep(const std::string& id, Lasting lasting) const {
  if (find(id, lasting)) return {};
  Manifest manifest = TRY(find_staged(id));
  Fd staged = TRY(open_beneath(staging_.get(), id, O_RDONLY | O_DIRECTORY));
  TRY(place_layers(staged.get(), manifest));
  if (lasting == Lasting::this_boot) return {};
  if (::syncfs(staged.get()) < 0) return fail_errno("bring a snapshot to the disk");
  if (::renameat(staging_.get(), id.c_str(), kept_.get(), id.c_str()) < 0)
    return fail_errno("place a snapshot");
  if (::fsync(kept_.get()) < 0) return fail_errno("bring a snapshot to the disk");
  return {};
}

Result<void> SnapshotStore::place_layers(int staged, Manifest& manifest) const {
  if (!has_new_layers(manifest)) return {};
  Fd turn = TRY(take_turn(state_dir_));
  TRY(name_layers(staged, manifest));
  for (SnapshotLayer& layer : manifest.layers) {
    if (layer.is_new) TRY(place_layer(staged, layer));
    layer.is_new = false;
  }
  return write_manifest(staged, manifest);
}

Result<void> SnapshotStore::to_trash(int from, const std::string& name) const {
  if (::renameat(from, name.c_str(), trash_.get(), new_hex_id().c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno("move a part of a snapshot to the trash");
}

Result<void> SnapshotStore::drop(const std::string& id) const {
  TRY(to_trash(kept_.get(), id));
  return to_trash(staging_.get(), id);
}

bool SnapshotStore::has_layers() const {
  Fd again(::openat(layers_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return again.valid() && !sys::is_empty_directory(again.get()).value_or(false);
}

Result<std::set<std::string>> SnapshotStore::used() const {
  std::set<std::string> used;
  // Sandboxes first and snapshots last: what is made from a snapshot meanwhile is still named by that.
  TRY(add_notes(state_dir_ + "/" + state::kSandboxes, used));
  TRY(add_notes(state_dir_ + "/" + state::kSpares, used));
  TRY(add_manifests(staging_.get(), used));
  TRY(add_manifests(kept_.get(), used));
  TRY(add_images(images_.get(), used));
  return used;
}

Result<bool> SnapshotStore::sweep() const {
  Fd turn = TRY(take_turn(state_dir_));
  std::set<std::string> wanted = TRY(used());
  bool removed = false;
  for (const std::string& name : TRY(sys::names_in(layers_.get()))) {
    if (wanted.contains(name)) continue;
    TRY(to_trash(layers_.get(), name));
    removed = true;
  }
  return removed;
}

}  // namespace osb::launcher
