#include "execd/memory_kills.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/strings.h"
#include "execd/cgroup_usage.h"

namespace osb::execd {
namespace {

// Between the kernel's decision and the moment at which the end is seen here the process has to give back all
// its memory.
constexpr auto kOneMoment = std::chrono::seconds(1);

}  // namespace

MemoryKills::MemoryKills(std::string root, std::string own) : root_(std::move(root)), own_(std::move(own)) {}

void MemoryKills::open() {
  opened_ = true;
  if (own_.empty()) own_ = read_file("/proc/self/cgroup").value_or("");
  std::string path = memory_kill_counter(root_, own_);
  if (!path.empty()) counter_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

uint64_t MemoryKills::look(Instant now) {
  if (!opened_) open();
  char text[512];
  ssize_t n = counter_.valid() ? ::pread(counter_.get(), text, sizeof text, 0) : -1;
  if (n <= 0) return count_;
  uint64_t count = keyed_number({text, static_cast<size_t>(n)}, "oom_kill").value_or(count_);
  if (count > count_) {
    count_ = count;
    grown_at_ = now;
  }
  return count_;
}

bool MemoryKills::explains(ExitStatus end, uint64_t before, Instant now) {
  look(now);
  bool killed = end.signal() == SIGKILL || (!end.signalled() && end.api_code() == 128 + SIGKILL);
  return killed && count_ > before && now - grown_at_ <= kOneMoment;
}

std::string out_of_memory_text(std::optional<int64_t> limit_bytes) {
  if (!limit_bytes) return "out of memory";
  constexpr int64_t kMebi = 1 << 20, kGibi = 1 << 30;
  bool whole_gibi = *limit_bytes % kGibi == 0, whole_mebi = *limit_bytes % kMebi == 0;
  int64_t number = whole_gibi ? *limit_bytes / kGibi : whole_mebi ? *limit_bytes / kMebi : *limit_bytes;
  const char* unit = whole_gibi ? " GiB" : whole_mebi ? " MiB" : " bytes";
  return "out of memory (limit " + std::to_string(number) + unit + ")";
}

}  // namespace osb::execd
