#pragma once

// The content-addressed store: every layer once, unpacked, named by the digest of its tar stream; owners as
// in the image, mapped per sandbox when it is mounted.
//
//   images/store/layers/<digest>/   the files of a layer
//   images/store/staging/           layers being unpacked
//   images/store/trash/             on the way out
//   catalog/index.json              names and images; see index.h
//   images/snapshots/images/<id>    which layers of snapshots an image has, for the launcher, who keeps those
//
// Whatever has its final name is complete: it got it by a rename. There is no recovery: opening the store
// sweeps what an ended writer left. One writer at a time; readers need no lock.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "image/index.h"

namespace osb::image {

// Attribute of a sandbox's directory below the state directory: the id of its image. The launcher sets it
// before it opens the layers, so whoever moves a layer away and then finds no such attribute knows that
// nobody uses it.
inline constexpr char kImageAttribute[] = "trusted.opensandbox.image";

class Store {
 public:
  struct Options {
    std::string state_dir;
    gid_t service_gid = 0;                              // who may read the index
    std::function<void()> waiting;                      // called once when another writer is at work
    std::function<void(const std::string& name)> lost;  // an image that a crash of the host cut off
  };
  // As root. Waits for other writers.
  static Result<Store> open(Options options);

  const Index& index() const { return index_; }
  const std::string& state_dir() const { return options_.state_dir; }

  bool has_layer(const std::string& digest) const;
  std::string layer_path(const std::string& digest) const;
  // Of one that an image has of a sandbox (Image::over).
  std::string sandbox_layer_path(const std::string& digest) const;

  // The path of a fresh directory to unpack into.
  Result<std::string> stage();
  void discard(const std::string& staged);
  // Gives a staged directory its name. Fine when the layer is there already.
  Result<void> commit_layer(const std::string& staged, const std::string& digest);

  // Makes the image known under the names, which others lose. Its layers are there.
  Result<void> add(Image image, const std::vector<std::string>& names);
  // A name, or an image with all of its names by the beginning of its id (Index::find_id). Code::not_found;
  // Code::wrong_state with the sandboxes' ids when it is the last name of an image in use.
  enum class InUse { refuse, keep_until_unused };
  Result<void> remove(const std::string& called, InUse in_use);
  // Removes images without a name that no sandbox uses, and layers without an image.
  Result<void> collect();

  // Starts a process that waits until the new layers are on disk. The caller may end at once.
  void settle_in_background();

  // Ids of the sandboxes made from an image.
  Result<std::vector<std::string>> users_of(const std::string& image_id) const;

 private:
  explicit Store(Options options) : options_(std::move(options)) {}
  Result<void> make_directories();
  Result<void> sweep();
  Result<void> drop_lost_images();
  Result<void> write_index(const Index& index);
  Result<void> pin(const Image& image);
  Result<void> unpin_unknown();
  Result<void> empty_trash();
  Result<std::multimap<std::string, std::string>> users() const;  // image id -> handles of sandboxes
  std::string owners_name(const std::string& handle) const;
  std::string path(const std::string& below) const;

  Options options_;
  Fd lock_, layers_, staging_, trash_;
  Index index_;
  std::vector<std::string> unsettled_;  // layers of this writer
};

// When the service starts: opens the store only if something was cut off, which `lost` is told.
Result<void> drop_lost_images(Store::Options options);

}  // namespace osb::image
