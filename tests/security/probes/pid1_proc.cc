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
  // The numbers in fd/ may be listed by whoever owns the process; where they lead may not be known.
  for (const char* name : {"fd", "fdinfo", "map_files"}) {
    const std::string directory = init + name;
    File opened = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!opened.ok()) a.call("open", directory, -1);
    for (const std::string& entry : list_directory(directory)) {
      const std::string path = directory + "/" + entry;
      char target[256];
      if (std::string_view(name) != "fdinfo")
        a.call("readlink(2)", "in " + directory, ::readlink(path.c_str(), target, sizeof target));
      File file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
      a.call("open", "in " + directory, file.fd());
    }
  }
  a.call("open", "/proc/1/mem for writing", writable("/proc/1/mem"));
}

}  // namespace

extern const Probe probe_pid1_proc = {
    "pid1_proc", "look into process 1 through /proc (mem, fd, environ, maps, root, cwd, exe)", nullptr, run};

}  // namespace osb::probe
