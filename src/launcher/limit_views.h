#pragma once

// What a limited sandbox sees instead of the host's own size: /proc/meminfo, /proc/cpuinfo and
// /sys/devices/system/cpu/online as they would be on a machine of the sandbox's size. The texts depend on
// nothing but the limits, so they are files which all sandboxes of one size share; each shows them through a
// read-only mount. What they say about use, other than size, is fixed: the machine is idle.
//
// A mount table names the place of such a file within its file system. So they lie in a small one of their
// own, which is attached nowhere; on kernels that cannot copy from such a one (before 6.15), in the state
// directory, whose path limited sandboxes then see.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace osb::launcher {

std::string meminfo_text(int64_t memory_bytes);
// The first `count` processors of the host's text.
std::string cpuinfo_text(std::string_view host, int count);
std::string online_text(int count);  // "0-3"

// Not thread-safe; belongs to the launcher.
class LimitViews {
 public:
  // `directory` is made when it is missing, and emptied: what runs keeps what it shows.
  static Result<LimitViews> open(const std::string& directory);
  // In a directory that is there, as it is.
  explicit LimitViews(Fd directory) : directory_(std::move(directory)) {}

  // Detached mounts of files to be shown.
  Result<Fd> meminfo(int64_t memory_bytes);
  Result<Fd> cpuinfo(int count);
  Result<Fd> online(int count);

  // The same as files below `directory()`: their names.
  Result<std::string> meminfo_file(int64_t memory_bytes);
  int directory() const { return directory_.get(); }

 private:
  template <class Make>
  Result<std::string> ensure(std::string name, Make make);
  Result<void> write(const std::string& name, std::string_view text);
  Result<Fd> mount_of(const std::string& name) const;
  void clear();

  Fd directory_;
  std::set<std::string> made_;
};

}  // namespace osb::launcher
