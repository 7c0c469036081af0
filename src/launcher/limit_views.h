#pragma once

// What a limited sandbox sees instead of the host's own size: /proc/meminfo, /proc/cpuinfo and
// /sys/devices/system/cpu/online as they would be on a machine of the sandbox's size. The texts depend on
// nothing but the limits, so they are files which all sandboxes of one size share; each shows them through a
// read-only mount. What they say about use, other than size, is fixed: the machine is idle.

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
  static Result<LimitViews> open(std::string directory);

  // Paths of files to be shown.
  Result<std::string> meminfo(int64_t memory_bytes);
  Result<std::string> cpuinfo(int count);
  Result<std::string> online(int count);

 private:
  explicit LimitViews(std::string directory) : directory_(std::move(directory)) {}
  template <class Make>
  Result<std::string> ensure(std::string name, Make make);
  void clear();

  std::string directory_;
  std::set<std::string> made_;
};

}  // namespace osb::launcher
