#pragma once

// The files of a database as the host sees them: who may use them, and room that is kept for them.
//
// The write-ahead log has all of its blocks on the disk before it needs them. So what has to be noted when
// the disk is full (a delete, an end, an expiry) can be noted, and no program that eats up the rest of the
// disk can come in between, as it could with a spare file that is removed in need.

#include <string>

#include "base/fd.h"

namespace osb::store {

class Files {
 public:
  // Makes what is missing: parent directories (mode 0700), the file (mode 0600). Takes the file's lock, for
  // which it waits a moment: a service that was killed may need one to be gone. Code::already_exists: another
  // process uses it.
  static Result<Files> open(const std::string& path);

  bool read_only() const { return read_only_; }
  // Opened read-only, but by now the file system would take writes.
  bool writable_again() const;
  // Keeps room for the log, when the disk has plenty. True: there is nothing left to do.
  bool reserve();

 private:
  std::string path_;
  // Open until SQLite has closed the file: closing any descriptor of it drops SQLite's locks.
  Fd file_;
  Fd log_;
  bool read_only_ = false, reserved_ = false;
};

// Less than this, and the next thing that is made fails half-way.
inline constexpr int64_t kLeastRoom = 1 << 20;
// Code::exhausted when the file system of this directory has no room left, for data or for new files.
Result<void> check_room(const std::string& directory);

}  // namespace osb::store
