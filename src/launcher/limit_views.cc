#include "launcher/limit_views.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "sys/directory.h"
#include "sys/mount.h"

namespace osb::launcher {
namespace {

// Clients choose the sizes: so many different ones are kept, then all are made anew.
constexpr size_t kMost = 256;
constexpr size_t kMaxCpuinfo = 16 << 20;
constexpr char kMostBytes[] = "67108864";  // of all files together

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

// A file system for these files alone, if the kernel can show parts of one that is attached nowhere.
Result<Fd> create_own() {
  const sys::MountOption options[] = {{"mode", "0711"}, {"size", kMostBytes}};
  Fd own(
      sys::mount_filesystem("tmpfs", options, 2, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
  if (!own.valid()) return fail_errno("mount a tmpfs", -own.get());
  Fd copy(sys::clone_mount(own.get(), ""));
  if (!copy.valid()) return fail_errno("copy a detached mount", -copy.get());
  return own;
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

Result<LimitViews> LimitViews::open(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0711) < 0 && errno != EEXIST) return fail_errno("make " + directory);
  LimitViews kept(TRY(open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)));
  kept.clear();
  if (auto own = create_own()) return LimitViews(std::move(*own));
  return kept;
}

void LimitViews::clear() {
  made_.clear();
  auto names = sys::names_in(directory_.get()).value_or(std::vector<std::string>());
  for (const std::string& name : names) ::unlinkat(directory_.get(), name.c_str(), 0);
}

Result<void> LimitViews::write(const std::string& name, std::string_view text) {
  Fd file = TRY(open_at(directory_.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0444));
  auto written = write_all(file.get(), text);
  // Half a file would be in the way of every later attempt, and nobody would know that it is half.
  if (!written) ::unlinkat(directory_.get(), name.c_str(), 0);
  return in_context("write " + name, std::move(written));
}

template <class Make>
Result<std::string> LimitViews::ensure(std::string name, Make make) {
  if (made_.contains(name)) return name;
  if (made_.size() >= kMost) clear();
  std::string text = TRY(make());
  if (auto written = write(name, text); !written) {
    // The file system may be full of other sizes; who shows them keeps them.
    clear();
    TRY(write(name, text));
  }
  made_.insert(name);
  return name;
}

Result<Fd> LimitViews::mount_of(const std::string& name) const {
  int mount = sys::clone_mount(directory_.get(), name.c_str());
  if (mount < 0) return fail_errno("copy the mount of " + name, -mount);
  return Fd(mount);
}

Result<std::string> LimitViews::meminfo_file(int64_t memory_bytes) {
  return ensure("meminfo-" + std::to_string(memory_bytes),
                [&]() -> Result<std::string> { return meminfo_text(memory_bytes); });
}

Result<Fd> LimitViews::meminfo(int64_t memory_bytes) { return mount_of(TRY(meminfo_file(memory_bytes))); }

Result<Fd> LimitViews::cpuinfo(int count) {
  return mount_of(TRY(ensure("cpuinfo-" + std::to_string(count), [&]() -> Result<std::string> {
    return cpuinfo_text(TRY(read_file("/proc/cpuinfo", kMaxCpuinfo)), count);
  })));
}

Result<Fd> LimitViews::online(int count) {
  return mount_of(TRY(ensure("online-" + std::to_string(count),
                             [&]() -> Result<std::string> { return online_text(count); })));
}

}  // namespace osb::launcher
