#include <sys/stat.h>

#include <cstdio>

#include "tools.h"

namespace osb::probe {
namespace {

constexpr unsigned long kLowestForeignId = 65536;  // below live the host's own users

// Root in here must be nobody out there.
void read_map(Attempts& a, const char* path) {
  const std::string text = read_file(path).value_or("");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    unsigned long inside = 0, outside = 0, count = 0;
    if (std::sscanf(text.substr(at, end - at).c_str(), "%lu %lu %lu", &inside, &outside, &count) == 3) {
      if (outside < kLowestForeignId)
        a.got(std::string(path) + " maps id " + std::to_string(inside) + " to the host's id " +
              std::to_string(outside));
      else
        a.stopped("ids map to " + std::to_string(outside) + " and up on the host");
    }
    at = end + 1;
  }
}

void rewrite_map(Attempts& a, const char* path, std::string_view line) {
  File file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (!file.ok()) return void(a.call("open", path, -1));
  a.call("write(2)", path, ::write(file.fd(), line.data(), line.size()));
}

// An id outside the map does not exist here; a kernel that took one would hand out a foreign user's rights.
void become_unmapped(Attempts& a) {
  const unsigned foreign = 3000000000u;
  a.call("setresuid(2)", "id outside the map",
         in_child([&] { return ::syscall(SYS_setresuid, foreign, foreign, foreign); }));
  Scratch scratch;
  if (scratch.ok()) a.call("chown(2)", "id outside the map", ::chown(scratch.path(), foreign, foreign));
}

void run(Attempts& a, Args) {
  read_map(a, "/proc/self/uid_map");
  read_map(a, "/proc/self/gid_map");
  for (const char* path : {"/proc/self/uid_map", "/proc/1/uid_map", "/proc/self/gid_map"})
    rewrite_map(a, path, "0 0 1\n");
  become_unmapped(a);
}

}  // namespace

extern const Probe probe_uid_map = {
    "uid_map", "be, or become, an id of the host through the user namespace's map", nullptr, run};

}  // namespace osb::probe
