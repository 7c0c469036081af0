#include "image/store.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/ids.h"
#include "base/strings.h"
#include "image/digest.h"
#include "json/decode.h"
#include "sys/directory.h"
#include "sys/process.h"
#include "sys/remove_tree.h"

namespace osb::image {
namespace {

constexpr char kBootAttribute[] = "trusted.opensandbox.boot";
constexpr char kSnapshotLayers[] = "images/snapshots/layers", kSnapshotLock[] = "images/snapshots/lock";
constexpr char kPinned[] = "images/snapshots/images", kFresh[] = ".new";
constexpr char kLayers[] = "layers", kStaging[] = "staging", kTrash[] = "trash";

Result<void> make_dir(const std::string& path, mode_t mode, gid_t gid = 0) {
  if (::mkdir(path.c_str(), mode) == 0) {
    if (::chown(path.c_str(), 0, gid) < 0 || ::chmod(path.c_str(), mode) < 0)
      return fail_errno("own " + path);
    return {};
  }
  if (errno != EEXIST) return fail_errno("make " + path);
  return {};
}

std::set<std::string> layers_of(const Index& index) {
  std::set<std::string> layers;
  for (const auto& [id, image] : index.images) layers.insert(image.layers.begin(), image.layers.end());
  return layers;
}

// Made in an earlier boot, and nobody saw it reach the disk.
bool is_cut_off(const std::string& layer_path, const std::string& boot) {
  char value[64];
  ssize_t n = ::lgetxattr(layer_path.c_str(), kBootAttribute, value, sizeof value);
  return n >= 0 && std::string_view(value, static_cast<size_t>(n)) != boot;
}

bool is_lost(const std::string& state_dir, const Image& image, const std::string& boot) {
  for (const std::string& layer : image.layers) {
    if (is_cut_off(state_dir + "/images/store/layers/" + layer, boot)) return true;
  }
  return false;
}

// Snapshots that lie over an image (launcher/snapshot_manifest.h).
Result<void> add_snapshots(const std::string& state_dir, std::multimap<std::string, std::string>& users) {
  constexpr size_t kMost = 32 * 1024;
  constexpr std::string_view kLine = "image ";
  for (const char* kind : {"kept", "staging"}) {
    std::string top = state_dir + "/images/snapshots/" + kind;
    auto names = sys::names_in(top);
    if (!names && names.error().code == Code::not_found) continue;
    if (!names) return std::unexpected(std::move(names.error()));
    for (const std::string& name : *names) {
      auto manifest = read_file(top + "/" + name + "/manifest", kMost);
      if (!manifest && manifest.error().code == Code::not_found) continue;
      if (!manifest) return std::unexpected(std::move(manifest.error()));
      for (std::string_view line : split(*manifest, '\n')) {
        if (line.starts_with(kLine)) users.emplace(line.substr(kLine.size()), "snapshot " + name);
      }
    }
  }
  return {};
}

// The layers of snapshots are the launcher's, who removes one when nobody names it (SnapshotStore::sweep()).
// Under this lock of its own: what is pinned or let go meanwhile is seen as a whole.
Result<Fd> lock_snapshots(const std::string& state_dir) {
  Fd lock = TRY(open_at(AT_FDCWD, state_dir + "/" + kSnapshotLock, O_RDWR | O_CREAT, 0600));
  while (::flock(lock.get(), LOCK_EX) < 0) {
    if (errno != EINTR) return fail_errno("lock the snapshots");
  }
  return lock;
}

bool has_name(const Index& index, const std::string& id) {
  for (const auto& [name, named] : index.names) {
    if (named == id) return true;
  }
  return false;
}

}  // namespace

std::string Store::path(const std::string& below) const {
  return options_.state_dir + "/images/store/" + below;
}
std::string Store::layer_path(const std::string& digest) const {
  return path(std::string(kLayers) + "/" + digest);
}

std::string Store::sandbox_layer_path(const std::string& digest) const {
  return options_.state_dir + "/" + kSnapshotLayers + "/" + digest;
}

Result<void> Store::make_directories() {
  TRY(make_dir(options_.state_dir, 0711));
  TRY(make_dir(options_.state_dir + "/images", 0700));
  TRY(make_dir(options_.state_dir + "/images/store", 0700));
  for (const char* name : {kLayers, kStaging, kTrash}) TRY(make_dir(path(name), 0700));
  TRY(make_dir(options_.state_dir + "/" + kCatalogDirectory, 0750, options_.service_gid));
  layers_ = TRY(open_at(AT_FDCWD, path(kLayers), O_RDONLY | O_DIRECTORY));
  staging_ = TRY(open_at(AT_FDCWD, path(kStaging), O_RDONLY | O_DIRECTORY));
  sys::spread_subdirectories(staging_.get());
  trash_ = TRY(open_at(AT_FDCWD, path(kTrash), O_RDONLY | O_DIRECTORY));
  return {};
}

Result<Store> Store::open(Options options) {
  if (::geteuid() != 0) {
    return fail(
        Code::permission_denied,
        "images are kept with the owners of their files, which only root may set\n  remedy: use sudo");
  }
  Store store(std::move(options));
  TRY(store.make_directories());
  store.lock_ = TRY(open_at(AT_FDCWD, store.path("lock"), O_RDWR | O_CREAT, 0600));
  if (::flock(store.lock_.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK) return fail_errno("lock the image store");
    if (store.options_.waiting) store.options_.waiting();
    if (::flock(store.lock_.get(), LOCK_EX) < 0) {
      if (errno == EINTR) return fail(Code::cancelled, "interrupted");
      return fail_errno("lock the image store");
    }
  }
  store.index_ = TRY(load_index(store.options_.state_dir));
  TRY(in_context("sweep the image store", store.sweep()));
  TRY(store.drop_lost_images());
  return store;
}

// Sandboxes of an earlier boot are gone, so nobody uses what goes here.
Result<void> Store::drop_lost_images() {
  std::string boot = TRY(sys::boot_id());
  Index next = index_;
  for (const auto& [id, image] : index_.images) {
    if (!is_lost(options_.state_dir, image, boot)) continue;
    for (const auto& [name, named] : index_.names) {
      if (named == id && options_.lost) options_.lost(name);
      if (named == id) next.names.erase(name);
    }
    next.images.erase(id);
  }
  if (next.images.size() != index_.images.size()) {
    TRY(write_index(next));
    index_ = std::move(next);
  }
  // Also layers that no image has yet: an import of this boot must not find them and think them whole.
  for (const std::string& layer : TRY(sys::names_in(layers_.get()))) {
    if (!is_cut_off(layer_path(layer), boot)) continue;
    if (::renameat(layers_.get(), layer.c_str(), trash_.get(), new_uuid4().c_str()) < 0)
      return fail_errno("remove a layer that was cut off");
  }
  return empty_trash();
}

Result<void> drop_lost_images(Store::Options options) {
  Index index = TRY(load_index(options.state_dir));
  std::string boot = TRY(sys::boot_id());
  bool lost = std::ranges::any_of(
      index.images, [&](const auto& item) { return is_lost(options.state_dir, item.second, boot); });
  if (lost) TRY(Store::open(std::move(options)));
  return {};
}

void Store::settle_in_background() {
  if (unsettled_.empty()) return;
  pid_t pid = ::fork();
  if (pid != 0) return;  // also when it failed: the layers stay marked, which is true
  // Nothing of the caller's: neither the lock nor a pipe whose end somebody waits for.
  ::setsid();
  int layers = ::fcntl(layers_.get(), F_DUPFD_CLOEXEC, 16), null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd : {0, 1, 2}) ::dup2(null, fd);
  if (::dup2(layers, 3) < 0) ::_exit(1);
  ::syscall(SYS_close_range, 4, ~0U, 0);
  if (::syncfs(3) < 0) ::_exit(1);
  for (const std::string& layer : unsettled_) {
    int dir = ::openat(3, layer.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0) (void)::fremovexattr(dir, kBootAttribute);
  }
  ::_exit(0);
}

// Nobody else writes now: what lies in staging is half-made and what lies in the trash was on its way out.
Result<void> Store::sweep() {
  for (const std::string& name : TRY(sys::names_in(staging_.get()))) discard(name);
  TRY(unpin_unknown());
  std::set<std::string> wanted = layers_of(index_);
  for (const std::string& name : TRY(sys::names_in(trash_.get()))) {
    // A writer was killed between moving a layer away and looking whether somebody uses it.
    if (is_hex_digest(name) && wanted.contains(name) && !has_layer(name) &&
        ::renameat(trash_.get(), name.c_str(), layers_.get(), name.c_str()) < 0) {
      return fail_errno("put layer " + name + " back");
    }
  }
  return empty_trash();
}

Result<void> Store::empty_trash() {
  for (const std::string& name : TRY(sys::names_in(trash_.get())))
    TRY(sys::remove_from_trash(trash_.get(), name));
  return {};
}

bool Store::has_layer(const std::string& digest) const {
  struct stat info{};
  return is_hex_digest(digest) && ::fstatat(layers_.get(), digest.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<std::string> Store::stage() {
  std::string name = new_hex_id();
  if (::mkdirat(staging_.get(), name.c_str(), 0755) < 0) return fail_errno("make a staging directory");
  if (::fchmodat(staging_.get(), name.c_str(), 0755, 0) < 0) return fail_errno("open a staging directory");
  return path(std::string(kStaging) + "/" + name);
}

void Store::discard(const std::string& staged) {
  std::string name = staged.substr(staged.rfind('/') + 1);
  if (::renameat(staging_.get(), name.c_str(), trash_.get(), new_uuid4().c_str()) == 0) (void)empty_trash();
}

Result<void> Store::commit_layer(const std::string& staged, const std::string& digest) {
  if (!is_hex_digest(digest)) return fail(Code::internal, "a layer without a digest");
  std::string name = staged.substr(staged.rfind('/') + 1);
  if (has_layer(digest)) {
    discard(staged);
    return {};
  }
  std::string boot = TRY(sys::boot_id());
  if (::setxattr(staged.c_str(), kBootAttribute, boot.data(), boot.size(), 0) < 0)
    return fail_errno("mark a layer");
  if (::renameat(staging_.get(), name.c_str(), layers_.get(), digest.c_str()) < 0)
    return fail_errno("place a layer");
  unsettled_.push_back(digest);
  return {};
}

Result<void> Store::write_index(const Index& index) {
  std::string final_path = index_path(options_.state_dir), fresh = final_path + ".new";
  {
    Fd file = TRY(open_at(AT_FDCWD, fresh, O_WRONLY | O_CREAT | O_TRUNC, 0644));
    // The directory keeps strangers out; the service only has its group.
    if (::fchmod(file.get(), 0644) < 0) return fail_errno("open the index to the service");
    TRY(write_all(file.get(), encode(index)));
    if (::fsync(file.get()) < 0) return fail_errno("write the index of images");
  }
  if (::rename(fresh.c_str(), final_path.c_str()) < 0) return fail_errno("replace the index of images");
  Fd dir = TRY(open_at(AT_FDCWD, options_.state_dir + "/" + kCatalogDirectory, O_RDONLY | O_DIRECTORY));
  if (::fsync(dir.get()) < 0) return fail_errno("write the index of images");
  return {};
}

Result<void> Store::add(Image image, const std::vector<std::string>& names) {
  Index next = index_;
  for (const std::string& layer : image.layers) {
    if (!has_layer(layer)) return fail(Code::internal, "layer " + layer + " is not in the store");
  }
  std::string id = image.id;
  TRY(pin(image));
  next.images.insert_or_assign(id, std::move(image));
  for (const std::string& name : names) next.names.insert_or_assign(name, id);
  TRY(write_index(next));
  index_ = std::move(next);
  return {};
}

// Before the index has the image: a pin of none is removed by the next writer, an image without its pin would
// lose its layers.
Result<void> Store::pin(const Image& image) {
  if (image.over.empty()) return {};
  std::string text;
  for (const SandboxLayer& layer : image.over) text += "layer " + layer.overlay + " " + layer.digest + "\n";
  std::string top = options_.state_dir + "/" + kPinned;
  TRY(make_dir(top, 0700));
  Fd dir = TRY(open_at(AT_FDCWD, top, O_RDONLY | O_DIRECTORY));
  Fd turn = TRY(lock_snapshots(options_.state_dir));
  for (const SandboxLayer& layer : image.over) {
    struct stat info{};
    if (::lstat(sandbox_layer_path(layer.digest).c_str(), &info) < 0)
      return fail(Code::not_found, "a layer of the snapshot is gone");
  }
  std::string fresh = image.id + kFresh;
  {
    Fd file = TRY(open_at(dir.get(), fresh, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    TRY(write_all(file.get(), text));
    if (::fsync(file.get()) < 0) return fail_errno("pin the layers of an image");
  }
  if (::renameat(dir.get(), fresh.c_str(), dir.get(), image.id.c_str()) < 0 || ::fsync(dir.get()) < 0)
    return fail_errno("pin the layers of an image");
  return {};
}

Result<void> Store::unpin_unknown() {
  auto dir = open_at(AT_FDCWD, options_.state_dir + "/" + kPinned, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().code == Code::not_found) return {};
  if (!dir) return std::unexpected(std::move(dir.error()));
  std::vector<std::string> unknown = TRY(sys::names_in(dir->get()));
  std::erase_if(unknown, [&](const std::string& id) { return index_.images.contains(id); });
  if (unknown.empty()) return {};
  Fd turn = TRY(lock_snapshots(options_.state_dir));
  for (const std::string& id : unknown) {
    if (::unlinkat(dir->get(), id.c_str(), 0) < 0 && errno != ENOENT)
      return fail_errno("let the layers of an image go");
  }
  return {};
}

Result<std::multimap<std::string, std::string>> Store::users() const {
  std::multimap<std::string, std::string> found;
  auto sandboxes = open_at(AT_FDCWD, options_.state_dir + "/sandboxes", O_RDONLY | O_DIRECTORY);
  if (!sandboxes && sandboxes.error().code == Code::not_found) return found;  // no service has run yet
  if (!sandboxes) return std::unexpected(std::move(sandboxes.error()));
  for (const std::string& handle : TRY(sys::names_in(sandboxes->get()))) {
    char value[128];
    std::string directory = options_.state_dir + "/sandboxes/" + handle;
    ssize_t n = ::lgetxattr(directory.c_str(), kImageAttribute, value, sizeof value);
    if (n > 0) found.emplace(std::string(value, static_cast<size_t>(n)), handle);
    if (n < 0 && errno != ENODATA && errno != ENOENT)
      return fail_errno("look at the image of sandbox " + handle);
  }
  TRY(add_snapshots(options_.state_dir, found));
  return found;
}

// What its owner calls it: its record says so (server/record.h). One from before there were records bears its
// id.
std::string Store::owners_name(const std::string& handle) const {
  constexpr size_t kMost = 64 * 1024;
  auto text = read_file(options_.state_dir + "/sandboxes/" + handle + "/record", kMost);
  auto record = text ? json::parse(*text) : Result<boost::json::value>(fail(Code::not_found, ""));
  const auto* object = record ? record->if_object() : nullptr;
  const auto* id = object ? object->if_contains("id") : nullptr;
  return id && id->is_string() ? std::string(id->as_string()) : handle;
}

Result<std::vector<std::string>> Store::users_of(const std::string& image_id) const {
  auto all = TRY(users());
  std::vector<std::string> ids;
  for (auto [it, end] = all.equal_range(image_id); it != end; ++it) ids.push_back(owners_name(it->second));
  return ids;
}

Result<void> Store::remove(const std::string& called, InUse in_use) {
  Index next = index_;
  const Image* image = index_.find(called);
  if (image) {
    next.names.erase(called);
  } else {
    image = TRY(index_.find_id(called));
    std::erase_if(next.names, [&](const auto& name) { return name.second == image->id; });
  }
  if (!has_name(next, image->id) && in_use == InUse::refuse) {
    auto ids = TRY(users_of(image->id));
    if (!ids.empty()) {
      std::string list;
      for (const std::string& id : ids) list += (list.empty() ? "" : ", ") + id;
      return fail(Code::wrong_state,
                  "sandboxes use the image " + called + ": " + list +
                      "\n  remedy: osb rm them, or give --force to drop the name now and the "
                      "files when the last of them is gone");
    }
  }
  TRY(write_index(next));
  index_ = std::move(next);
  return collect();
}

Result<void> Store::collect() {
  auto used = TRY(users());
  Index next = index_;
  std::map<std::string, Image> dropped;
  for (const auto& [id, image] : index_.images) {
    if (!has_name(index_, id) && !used.contains(id)) dropped.insert(next.images.extract(id));
  }
  if (!dropped.empty()) TRY(write_index(next));
  index_ = next;
  std::set<std::string> wanted = layers_of(index_);
  for (const std::string& layer : TRY(sys::names_in(layers_.get()))) {
    if (!wanted.contains(layer) &&
        ::renameat(layers_.get(), layer.c_str(), trash_.get(), layer.c_str()) < 0) {
      return fail_errno("move layer " + layer + " away");
    }
  }
  // Moving a layer does not disturb who has it mounted. Whoever opened one before it moved is known by now.
  used = TRY(users());
  for (auto& [id, image] : dropped) {
    if (!used.contains(id)) continue;
    next.images.emplace(id, std::move(image));
  }
  if (next.images.size() != index_.images.size()) {
    TRY(write_index(next));
    index_ = std::move(next);
    for (const std::string& layer : layers_of(index_)) {
      if (!has_layer(layer)) (void)::renameat(trash_.get(), layer.c_str(), layers_.get(), layer.c_str());
    }
  }
  TRY(unpin_unknown());
  return empty_trash();
}

}  // namespace osb::image
