#include "execd/cgroup_usage.h"

#include <unistd.h>

#include <vector>

#include "base/fd.h"
#include "base/strings.h"

namespace osb::execd {
namespace {

// Version 1 says "no limit" with the largest multiple of a page.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

std::optional<std::string> read_text(const std::string& path) {
  auto text = read_file(path, 64 * 1024);
  return text ? std::optional(std::string(trim(*text))) : std::nullopt;
}

std::optional<uint64_t> read_number(const std::string& path) {
  auto text = read_text(path);
  return text ? parse_number<uint64_t>(*text) : std::nullopt;
}

std::optional<uint64_t> read_keyed(const std::string& path, std::string_view key) {
  auto text = read_text(path);
  return text ? keyed_number(*text, key) : std::nullopt;
}

std::optional<uint64_t> less(std::optional<uint64_t> total, std::optional<uint64_t> part) {
  if (!total) return std::nullopt;
  return *total - std::min(*total, part.value_or(0));
}

// Directories that may be this process's group: the one its path names, else the mount itself (a container
// sees its own group there while the path may be the host's).
std::vector<std::string> candidates(const std::string& mount, std::string_view path) {
  std::vector<std::string> out;
  if (path.size() > 1 && path.find("..") == path.npos) out.push_back(mount + std::string(path));
  out.push_back(mount);
  return out;
}

void read_unified(const std::string& dir, CgroupUsage& usage) {
  if (auto limit = read_text(dir + "/memory.max")) {
    usage.memory_limit_bytes = parse_number<uint64_t>(*limit);  // "max" is no number
    usage.memory_used_bytes =
        less(read_number(dir + "/memory.current"), read_keyed(dir + "/memory.stat", "inactive_file"));
  }
  if (auto quota = read_text(dir + "/cpu.max")) {
    auto words = split(*quota, ' ');
    auto allowed = parse_number<uint64_t>(words[0]);
    auto period = words.size() > 1 ? parse_number<uint64_t>(words[1]) : std::nullopt;
    if (allowed && period && *period > 0)
      usage.cpu_limit = static_cast<double>(*allowed) / static_cast<double>(*period);
    usage.cpu_used_usec = read_keyed(dir + "/cpu.stat", "usage_usec");
  }
}

void read_memory_v1(const std::string& dir, CgroupUsage& usage) {
  auto used = read_number(dir + "/memory.usage_in_bytes");
  if (!used || usage.memory_used_bytes) return;
  usage.memory_used_bytes = less(used, read_keyed(dir + "/memory.stat", "total_inactive_file"));
  auto limit = read_number(dir + "/memory.limit_in_bytes");
  if (limit && *limit < kNoLimit) usage.memory_limit_bytes = limit;
}

void read_cpu_v1(const std::string& dir, CgroupUsage& usage) {
  if (auto used = read_number(dir + "/cpuacct.usage"); used && !usage.cpu_used_usec)
    usage.cpu_used_usec = *used / 1000;
  auto quota = read_text(dir + "/cpu.cfs_quota_us");
  auto allowed = quota ? parse_number<int64_t>(*quota) : std::nullopt;
  auto period = read_number(dir + "/cpu.cfs_period_us");
  if (allowed && *allowed > 0 && period && *period > 0 && !usage.cpu_limit) {
    usage.cpu_limit = static_cast<double>(*allowed) / static_cast<double>(*period);
  }
}

}  // namespace

std::optional<uint64_t> keyed_number(std::string_view text, std::string_view key) {
  for (std::string_view line : split(text, '\n')) {
    size_t blank = line.find(' ');
    if (blank != line.npos && line.substr(0, blank) == key)
      return parse_number<uint64_t>(trim(line.substr(blank)));
  }
  return std::nullopt;
}

std::string memory_kill_counter(const std::string& root, const std::string& own) {
  for (std::string_view line : split(own, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    bool unified = fields[1].empty();
    if (!unified && fields[1] != "memory") continue;
    for (const char* mount : {unified ? "" : "/memory", unified ? "/unified" : "/memory"}) {
      for (const std::string& dir : candidates(root + mount, fields[2])) {
        std::string file = dir + (unified ? "/memory.events" : "/memory.oom_control");
        if (read_keyed(file, "oom_kill")) return file;
      }
    }
  }
  return {};
}

CgroupUsage read_cgroup_usage(const std::string& root, const std::string& own) {
  CgroupUsage usage;
  for (std::string_view line : split(own, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    std::string_view path = fields[2];
    if (fields[1].empty()) {
      for (const char* mount : {"", "/unified"}) {
        for (const std::string& dir : candidates(root + mount, path)) {
          if (!usage.memory_used_bytes && !usage.cpu_used_usec) read_unified(dir, usage);
        }
      }
      continue;
    }
    for (std::string_view controller : split(fields[1], ',')) {
      for (const std::string& mount :
           {root + "/" + std::string(controller), root + "/" + std::string(fields[1])}) {
        for (const std::string& dir : candidates(mount, path)) {
          if (controller == "memory") read_memory_v1(dir, usage);
          if (controller == "cpuacct" || controller == "cpu") read_cpu_v1(dir, usage);
        }
      }
    }
  }
  return usage;
}

}  // namespace osb::execd
