#include "sys/cgroup_delegation.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/fd.h"
#include "base/strings.h"

namespace osb::sys {

Result<void> make_group(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) < 0 && errno != EEXIST) return fail_errno("make cgroup " + path);
  return {};
}

Result<void> delegate(const std::string& group, const CgroupLayout& layout) {
  auto want = [&](const Controller& c, const char* word) -> Result<void> {
    if (c.version != Controller::Version::v2) return {};
    return in_context("enable a controller; the group must be ours to delegate",
                      write_file(group + "/cgroup.subtree_control", word));
  };
  TRY(want(layout.cpu, "+cpu"));
  TRY(want(layout.memory, "+memory"));
  TRY(want(layout.io, "+io"));
  return want(layout.pids, "+pids");
}

bool shares_out(const CgroupLayout& layout) {
  auto is_v2 = [](const Controller& c) { return c.version == Controller::Version::v2; };
  return is_v2(layout.cpu) || is_v2(layout.memory) || is_v2(layout.pids) || is_v2(layout.io);
}

Result<void> make_room(const std::string& group, const std::string& leaf) {
  // The root group, which has no type, may share out controllers and have processes; any other may not.
  if (::access((group + "/cgroup.type").c_str(), F_OK) < 0) return {};
  if (trim(TRY(read_file(group + "/cgroup.procs"))).empty()) return {};
  TRY(make_group(group + "/" + leaf));
  TRY(in_context("make room in cgroup " + group, write_file(group + "/" + leaf + "/cgroup.procs", "0")));
  if (trim(TRY(read_file(group + "/cgroup.procs"))).empty()) return {};
  return fail(Code::unsupported,
              "other processes are in the cgroup " + group +
                  ", so no limits can be set below it; let the service be the first process there, or move "
                  "them first (mkdir " +
                  group + "/init; for p in $(cat " + group + "/cgroup.procs); do echo $p > " + group +
                  "/init/cgroup.procs; done)");
}

Result<CgroupLayout> delegated_layout(const std::string& leaf) {
  std::string mount = TRY(CgroupLayout::detect()).v2;
  std::string group = v2_group(TRY(read_file("/proc/self/cgroup")));
  if (mount.empty() || group.empty()) return fail(Code::unsupported, "there is no cgroup version 2 here");
  if (group.ends_with("/" + leaf)) group.resize(group.size() - leaf.size() - 1);
  if (group.size() <= 1) return fail(Code::unsupported, "the service is in the root group");
  CgroupLayout layout;
  layout.v2 = mount + group;
  for (const char* file : {"", "/cgroup.procs", "/cgroup.subtree_control"}) {
    std::string path = layout.v2 + file;
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) < 0)
      return fail(Code::unsupported, "the group " + group + " is not delegated to the service's user");
  }
  std::string offered = TRY(read_file(layout.v2 + "/cgroup.controllers"));
  struct Wanted {
    const char* name;
    Controller* controller;
  };
  const Wanted wanted[] = {{"cpu", &layout.cpu}, {"memory", &layout.memory}, {"pids", &layout.pids}};
  auto words = split(trim(offered), ' ');
  auto is_offered = [&](const Wanted& w) {
    return std::find(words.begin(), words.end(), w.name) != words.end();
  };
  if (std::none_of(std::begin(wanted), std::end(wanted), is_offered)) return layout;
  // While other processes are in the group the controllers stay away, and the tier says so.
  auto room = make_room(layout.v2, leaf);
  if (!room && room.error().code == Code::unsupported) return layout;
  TRY(std::move(room));
  for (const Wanted& w : wanted) {
    if (!is_offered(w)) continue;
    if (write_file(layout.v2 + "/cgroup.subtree_control", std::string("+") + w.name))
      *w.controller = {Controller::Version::v2, layout.v2};
  }
  return layout;
}

Result<void> favour_group_changes(const CgroupLayout& layout) {
  bool v1 = false;
  for (const Controller* c : {&layout.cpu, &layout.memory, &layout.pids})
    v1 |= c->version == Controller::Version::v1;
  if (!v1 || layout.v2.empty()) return {};
  auto options = cgroup2_options(TRY(read_file("/proc/self/mountinfo", 16 << 20)));
  if (std::find(options.begin(), options.end(), "favordynmods") != options.end()) return {};
  // There is one superblock for the whole host. Asking for it again sets its options to exactly the ones
  // named.
  Fd context(::fsopen("cgroup2", FSOPEN_CLOEXEC));
  if (!context.valid()) return fail_errno("fsopen cgroup2");
  if (::fsconfig(context.get(), FSCONFIG_SET_FLAG, "favordynmods", nullptr, 0) < 0) return {};
  for (const std::string& option : options) {
    if (::fsconfig(context.get(), FSCONFIG_SET_FLAG, option.c_str(), nullptr, 0) < 0)
      return fail_errno("keep " + option);
  }
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0)
    return fail_errno("favour group changes");
  return {};
}

}  // namespace osb::sys
