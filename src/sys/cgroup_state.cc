// What groups say and are told while their sandboxes run.

#include <fcntl.h>
#include <unistd.h>

#include "base/strings.h"
#include "sys/cgroup.h"

namespace osb::sys {

using Version = Controller::Version;

std::vector<std::pair<std::string, std::string>> CgroupTree::views(const std::string& id) const {
  if (!exists()) return {};
  bool v1 = layout_.memory.version == Version::v1 || layout_.cpu.version == Version::v1;
  std::vector<std::pair<std::string, std::string>> views;
  if (!v1) {
    views.emplace_back("", path(layout_.v2, id));
    std::string quota = path(layout_.v2, id) + "/" + kWork + "/cpu.max";
    if (::access(quota.c_str(), F_OK) == 0) views.emplace_back("cpu.max", quota);
    return views;
  }
  auto of_cpu = [&](const std::string& mount) {
    std::string work = path(mount, id) + "/" + kWork;
    return mount == layout_.cpu.mount && ::access(work.c_str(), F_OK) == 0 ? work : path(mount, id);
  };
  if (layout_.memory.version == Version::v1) views.emplace_back("memory", path(layout_.memory.mount, id));
  if (layout_.cpu.version == Version::v1) views.emplace_back("cpu", of_cpu(layout_.cpu.mount));
  // Runtimes look for all four before they believe any.
  if (!layout_.cpuacct.empty()) views.emplace_back("cpuacct", of_cpu(layout_.cpuacct));
  if (!layout_.cpuset.empty()) views.emplace_back("cpuset", path(layout_.cpuset, id));
  return views;
}

Result<void> CgroupTree::kill(const std::string& id) const {
  if (!exists()) return {};
  auto done = write_file(path(layout_.v2, id) + "/cgroup.kill", "1");
  if (!done && done.error().code == Code::not_found) return {};
  return done;
}

Result<void> CgroupTree::freeze(const std::string& id, bool frozen) const {
  if (!exists())
    return fail(Code::unsupported, "this service has no cgroup in which it could freeze a sandbox");
  return write_file(path(layout_.v2, id) + "/cgroup.freeze", frozen ? "1" : "0");
}

Result<bool> CgroupTree::is_to_freeze(const std::string& id) const {
  if (!exists()) return false;
  return trim(TRY(read_file(path(layout_.v2, id) + "/cgroup.freeze"))) == "1";
}

Result<bool> CgroupTree::frozen(int events) {
  char text[256];
  ssize_t n = ::pread(events, text, sizeof text, 0);
  if (n < 0 && errno == ENODEV) return fail(Code::not_found, "the cgroup is gone");
  if (n < 0) return fail_errno("read cgroup.events");
  return std::string_view(text, static_cast<size_t>(n)).find("frozen 1") != std::string_view::npos;
}

Result<Fd> CgroupTree::open_events(const std::string& id) const {
  return open_at(AT_FDCWD, path(layout_.v2, id) + "/cgroup.events", O_RDONLY);
}

Result<bool> CgroupTree::populated(const std::string& id) const {
  auto text = read_file(path(layout_.v2, id) + "/cgroup.events");
  if (!text) {
    if (text.error().code == Code::not_found) return false;
    return std::unexpected(std::move(text).error());
  }
  return text->find("populated 1") != text->npos;
}

Result<std::vector<pid_t>> CgroupTree::processes(const std::string& id) const {
  std::string text = TRY(read_file(path(layout_.v2, id) + "/cgroup.procs", 16 << 20));
  std::vector<pid_t> pids;
  for (std::string_view line : split(text, '\n')) {
    if (auto pid = parse_number<pid_t>(line)) pids.push_back(*pid);
  }
  return pids;
}

Result<int64_t> CgroupTree::oom_kills(const std::string& id) const {
  if (layout_.memory.version == Version::none) return 0;
  bool v1 = layout_.memory.version == Version::v1;
  std::string text =
      TRY(read_file(path(layout_.memory.mount, id) + (v1 ? "/memory.oom_control" : "/memory.events")));
  for (std::string_view line : split(text, '\n')) {
    auto words = split(line, ' ');
    if (words.size() == 2 && words[0] == "oom_kill") return parse_number<int64_t>(words[1]).value_or(0);
  }
  return 0;
}

Result<int64_t> CgroupTree::kernel_memory(const std::string& id) const {
  if (layout_.memory.version == Version::none) return fail(Code::unsupported, "memory is not counted here");
  std::string group = path(layout_.memory.mount, id);
  if (layout_.memory.version == Version::v1)
    return parse_number<int64_t>(trim(TRY(read_file(group + "/memory.kmem.usage_in_bytes"))))
        .value_or(INT64_MAX);
  std::string text = TRY(read_file(group + "/memory.stat"));
  for (std::string_view line : split(text, '\n')) {
    auto words = split(line, ' ');
    if (words.size() == 2 && words[0] == "kernel") return parse_number<int64_t>(words[1]).value_or(INT64_MAX);
  }
  return fail(Code::unsupported, "the kernel's own memory is not counted here");
}

}  // namespace osb::sys
