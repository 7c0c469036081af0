#include "tools.h"

namespace osb::probe {
namespace {

// The kernel gives its first namespaces fixed inode numbers. Those of mnt and net are fixed only in newer
// kernels; older ones hand the first free number to mnt and leave net unknowable from here.
struct Initial {
  const char* name;
  unsigned long inode;
};
constexpr Initial kInitial[] = {
    {"ipc", 0xEFFFFFFF},    {"uts", 0xEFFFFFFE}, {"user", 0xEFFFFFFD}, {"pid", 0xEFFFFFFC},
    {"cgroup", 0xEFFFFFFB}, {"net", 0xEFFFFFF9}, {"mnt", 0xEFFFFFF8},  {"mnt", 0xF0000000},
};

void run(Attempts& a, Args) {
  for (const Initial& initial : kInitial) {
    const auto link = read_link(std::string("/proc/self/ns/") + initial.name);
    if (!link) continue;
    if (*link == std::string(initial.name) + ":[" + std::to_string(initial.inode) + "]")
      a.got(std::string("runs in the host's ") + initial.name + " namespace");
    else
      a.stopped("not the host's namespace", initial.name);
  }
}

}  // namespace

extern const Probe probe_initial_namespaces = {"initial_namespaces", "be in one of the host's own namespaces",
                                               nullptr, run};

}  // namespace osb::probe
