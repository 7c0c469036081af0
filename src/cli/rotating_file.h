#pragma once

// A file of lines that never grows beyond a size: when the next line would not fit, the file becomes NAME.1,
// what was NAME.1 becomes NAME.2, and the oldest goes. Without room on the disk lines are dropped, and the
// first that fits again is preceded by their number. Belongs to one thread; one process writes to a name at a
// time.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace osb::cli {

class RotatingFile {
 public:
  struct Options {
    std::string path;
    int64_t max_bytes = 100 << 20;
    int64_t backups = 5;  // 0: what is full begins anew
  };

  // Appends to what is there. Missing directories above it are made.
  static Result<RotatingFile> open(Options options);

  // With its line feed. A line longer than the whole file gets a file of its own.
  void write(std::string_view line);
  int64_t dropped() const { return dropped_; }
  int descriptor() const { return file_.get(); }

 private:
  RotatingFile(Options options, Fd file, int64_t size)
      : options_(std::move(options)), file_(std::move(file)), size_(size) {}
  void rotate();
  bool append(std::string_view line);

  Options options_;
  Fd file_;
  int64_t size_ = 0;
  int64_t dropped_ = 0;  // lines since the last that was written
};

}  // namespace osb::cli
