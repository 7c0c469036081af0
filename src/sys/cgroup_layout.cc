#include "sys/cgroup_layout.h"

#include "base/fd.h"
#include "base/strings.h"

namespace osb::sys {

CgroupLayout CgroupLayout::parse(std::string_view mountinfo, std::string_view v2_controllers) {
  CgroupLayout layout;
  auto claim = [](Controller& c, Controller::Version version, std::string_view mount) {
    if (c.version == Controller::Version::none) c = {version, std::string(mount)};
  };
  for (std::string_view line : split(mountinfo, '\n')) {
    size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    auto left = split(line.substr(0, dash), ' ');
    auto right = split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    // Only the whole hierarchy counts, not a bind of some group in it.
    if (left[3] != "/") continue;
    if (right[0] == "cgroup2" && layout.v2.empty()) {
      layout.v2 = left[4];
      for (std::string_view word : split(trim(v2_controllers), ' ')) {
        if (word == "cpu") claim(layout.cpu, Controller::Version::v2, left[4]);
        if (word == "memory") claim(layout.memory, Controller::Version::v2, left[4]);
        if (word == "pids") claim(layout.pids, Controller::Version::v2, left[4]);
        if (word == "io") claim(layout.io, Controller::Version::v2, left[4]);
      }
    }
    if (right[0] == "cgroup") {
      for (std::string_view word : split(right[2], ',')) {
        if (word == "cpu") claim(layout.cpu, Controller::Version::v1, left[4]);
        if (word == "memory") claim(layout.memory, Controller::Version::v1, left[4]);
        if (word == "pids") claim(layout.pids, Controller::Version::v1, left[4]);
        if (word == "blkio") claim(layout.io, Controller::Version::v1, left[4]);
        if (word == "cpuset" && layout.cpuset.empty()) layout.cpuset = left[4];
        if (word == "cpuacct" && layout.cpuacct.empty()) layout.cpuacct = left[4];
      }
    }
  }
  return layout;
}

Result<CgroupLayout> CgroupLayout::detect() {
  std::string mountinfo = TRY(read_file("/proc/self/mountinfo", 16 << 20));
  CgroupLayout first = parse(mountinfo, "");
  std::string controllers;
  if (!first.v2.empty()) controllers = read_file(first.v2 + "/cgroup.controllers").value_or("");
  return parse(mountinfo, controllers);
}

std::string v2_group(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with("0::/")) return std::string(line.substr(3));
  }
  return {};
}

std::vector<std::string> cgroup2_options(std::string_view mountinfo) {
  std::vector<std::string> options;
  for (std::string_view line : split(mountinfo, '\n')) {
    size_t dash = line.find(" - cgroup2 ");
    if (dash == line.npos) continue;
    for (std::string_view option : split(line.substr(line.rfind(' ') + 1), ',')) {
      if (option != "rw" && option != "ro") options.emplace_back(option);
    }
    return options;
  }
  return options;
}

}  // namespace osb::sys
