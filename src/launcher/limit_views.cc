#include "launcher/limit_views.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"

namespace osb::launcher {
namespace {

// Clients choose the sizes: so many different ones are kept, then all are made anew.
constexpr size_t kMost = 256;
constexpr size_t kMaxCpuinfo = 16 << 20;

constexpr const char* kNothing[] = {"Buffers",    "Cached",      "SwapCached",   "Active",    "Inactive",
                                    "SwapTotal",  "SwapFree",    "Dirty",        "Writeback", "AnonPages",
                                    "Mapped",     "Shmem",       "KReclaimable", "Slab",      "SReclaimable",
                                    "SUnreclaim", "KernelStack", "PageTables"};

void append_line(std::string& out, const char* name, int64_t kilobytes) {
  std::string number = std::to_string(kilobytes);
  out.append(name).append(":");
  size_t width = 24;  // of the kernel's own text
  size_t used = std::char_traits<char>::length(name) + 1 + number.size();
  out.append(used < width ? width - used : 1, ' ').append(number).append(" kB\n");
}

}  // namespace

std::string meminfo_text(int64_t memory_bytes) {
  int64_t kilobytes = memory_bytes / 1024;
  std::string out;
  for (const char* name : {"MemTotal", "MemFree", "MemAvailable"}) append_line(out, name, kilobytes);
  for (const char* name : kNothing) append_line(out, name, 0);
  return out;
}

std::string cpuinfo_text(std::string_view host, int count) {
  // One block per processor, each followed by an empty line.
  size_t end = 0;
  for (int i = 0; i < count; ++i) {
    size_t next = host.find("\n\n", end);
    if (next == host.npos) return std::string(host);
    end = next + 2;
  }
  return std::string(host.substr(0, end));
}

std::string online_text(int count) { return count <= 1 ? "0\n" : "0-" + std::to_string(count - 1) + "\n"; }

Result<LimitViews> LimitViews::open(std::string directory) {
  if (::mkdir(directory.c_str(), 0711) < 0 && errno != EEXIST) return fail_errno("make " + directory);
  LimitViews views(std::move(directory));
  views.clear();
  return views;
}

void LimitViews::clear() {
  made_.clear();
  DIR* dir = ::opendir(directory_.c_str());
  if (!dir) return;
  while (struct dirent* entry = ::readdir(dir)) {
    if (entry->d_type == DT_REG) ::unlinkat(::dirfd(dir), entry->d_name, 0);
  }
  ::closedir(dir);
}

template <class Make>
Result<std::string> LimitViews::ensure(std::string name, Make make) {
  std::string path = directory_ + "/" + name;
  if (made_.contains(name)) return path;
  if (made_.size() >= kMost) clear();
  std::string text = TRY(make());
  Fd file = TRY(open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0444));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail_errno("write " + path);
  made_.insert(std::move(name));
  return path;
}

Result<std::string> LimitViews::meminfo(int64_t memory_bytes) {
  return ensure("meminfo-" + std::to_string(memory_bytes),
                [&]() -> Result<std::string> { return meminfo_text(memory_bytes); });
}

Result<std::string> LimitViews::cpuinfo(int count) {
  return ensure("cpuinfo-" + std::to_string(count), [&]() -> Result<std::string> {
    return cpuinfo_text(TRY(read_file("/proc/cpuinfo", kMaxCpuinfo)), count);
  });
}

Result<std::string> LimitViews::online(int count) {
  return ensure("online-" + std::to_string(count),
                [&]() -> Result<std::string> { return online_text(count); });
}

}  // namespace osb::launcher
