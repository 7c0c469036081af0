#pragma once

// The root of a sandbox while it grows: carries out the steps of a plan, in order. Runs in the new process,
// between clone and exec: allocates nothing, errors are negative errno values.

#include "launcher/child.h"

namespace osb::launcher {

class RootBuilder {
 public:
  // `empty_directory`: a directory with nothing in it to cover others with, or -1 to make one when it is
  // needed.
  RootBuilder(const ChildOrder& order, int empty_directory)
      : order_(order), empty_directory_(empty_directory) {}

  int run(const ReadyStep& ready);
  int root() const { return root_; }  // a descriptor of it, once its overlay is attached

 private:
  int open_in_root(const char* path, int flags) const;
  int ensure_directory(const char* path) const;
  int place(int mount, const char* target) const;
  int map_ids(int mount) const;
  int overlay(const ReadyStep& ready);
  int add_root(int mount, const Step& step);
  int bind(const ReadyStep& ready) const;
  int devices(const char* target) const;
  int cover_of(bool directory);
  int mask(const char* target);
  int read_only(const char* target) const;
  int scratch(const char* target) const;
  int seal(const char* target) const;
  int show(const LimitView& view) const;
  int cgroup_directory() const;
  int show_limits() const;

  const ChildOrder& order_;
  int root_ = -1;
  int lowers_used_ = 0;
  int empty_file_ = -1, empty_directory_ = -1;  // what masks are copies of
};

}  // namespace osb::launcher
