#include "tools.h"

namespace osb::probe {
namespace {

// What process 1 holds in memory, environment and descriptors must stay closed to the processes it serves.
// Nothing that could be read is shown.
void run(Attempts& a, Args) {
  const std::string init = "/proc/1/";
  for (const char* name : {"environ", "auxv", "maps", "smaps", "mem", "pagemap", "syscall", "stack", "io"}) {
    File file = ::open((init + name).c_str(), O_RDONLY | O_CLOEXEC);
    if (!file.ok()) {
      a.call("open", init + name, -1);
      continue;
    }
    char byte;
    const ssize_t n = ::read(file.fd(), &byte, 1);
    if (n == 0)
      a.stopped("empty", init + name);
    else if (std::string_view(name) == "mem")  // opened is enough: address 0 is never mapped
      a.got("opened /proc/1/mem");
    else
      a.call("read(2)", init + name, n);
  }
  for (const char* name : {"root", "cwd", "exe"}) {
    File file = ::open((init + name).c_str(), O_PATH | O_CLOEXEC);
    a.call("open", init + name, file.fd());
  }
  for (const char* name : {"fd", "fdinfo", "map_files"}) {
    File directory = ::open((init + name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory.ok() && list_directory(init + name).empty())
      a.stopped("empty", init + name);
    else
      a.call("open", init + name, directory.fd());
  }
  for (const char* name : {"mem", "oom_score_adj", "clear_refs", "timerslack_ns"})
    a.call("open", init + name + " for writing", writable(init + name));
}

}  // namespace

extern const Probe probe_pid1_proc = {
    "pid1_proc", "look into process 1 through /proc (mem, fd, environ, maps, root, cwd, exe)", nullptr, run};

}  // namespace osb::probe
