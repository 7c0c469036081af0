#pragma once

// The root of a sandbox while it grows: carries out the steps of a plan, in order. Runs in the new process,
// between clone and exec: allocates nothing, errors are negative errno values.
//
// It works with root's rights in a tree that an image shaped. So a path of the image is only ever looked up
// to mount something there, inside the new root and by descriptor; what is opened, written or copied lies in
// file systems made here, and is reached through their own descriptors.

#include <sys/stat.h>

#include <cerrno>

#include "launcher/child.h"

namespace osb::launcher {

class RootBuilder {
 public:
  // `empty_directory`: a directory with nothing in it to cover others with, or -1 to make one when it is
  // needed. `disk`: a file system that is attached nowhere, for what the sandbox writes, or -1.
  RootBuilder(const ChildOrder& order, int empty_directory, int disk)
      : order_(order), disk_(disk), empty_directory_(empty_directory) {}

  int run(const ReadyStep& ready);
  int root() const { return root_; }  // a descriptor of it, once its overlay is attached
  // The sandbox's own null device, open for reading and writing, once it has devices; else -ENODEV.
  int null() const { return null_; }

 private:
  // What to do with symbolic links of the image.
  enum class Links { inside, refused };
  int open_in_root(const char* path, int flags, Links links) const;
  int make_directory(int parent, const char* name) const;
  int ensure_directory(const char* path, Links links) const;
  int open_mount_point(const char* target, Links links) const;
  int attach(int mount, const char* target, Links links) const;
  int place(int mount, const char* target, Links links) const;
  bool is_root(int directory) const;
  int map_ids(int mount) const;
  int mount_overlay(const ReadyStep& ready);
  int mount_overlay_of_descriptors(const ReadyStep& ready) const;
  int overlay(const ReadyStep& ready);
  int add_root(int mount, const Step& step);
  int bind(const ReadyStep& ready);
  int show_runsc(int mount, const char* target);
  int sysfs(const ReadyStep& ready) const;
  int devices(const ReadyStep& ready);
  int cover_of(bool directory);
  bool is_closed(const struct stat& info) const;
  int mask(const char* target);
  int read_only(const char* target) const;
  int scratch(const char* target) const;
  int seal(const char* target) const;
  int show(const LimitView& view) const;
  int cgroup_directory() const;
  int show_limits() const;

  const ChildOrder& order_;
  int disk_;
  int root_ = -1;
  int lowers_used_ = 0;
  int volumes_used_ = 0;
  int null_ = -ENODEV;   // files are masked with copies of it,
  int empty_directory_;  // directories with copies of this
};

}  // namespace osb::launcher
