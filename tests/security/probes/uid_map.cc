#include <sys/stat.h>

#include <cstdio>
#include <vector>

#include "tools.h"

namespace osb::probe {
namespace {

constexpr unsigned long kLowestForeignId = 65536;  // below live the host's own users

struct Line {
  unsigned long inside = 0, outside = 0, count = 0;
};

std::vector<Line> lines_of(const char* path) {
  const std::string text = read_file(path).value_or("");
  std::vector<Line> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    Line line;
    if (std::sscanf(text.substr(at, end - at).c_str(), "%lu %lu %lu", &line.inside, &line.outside,
                    &line.count) == 3)
      lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

// The numbers of a map are those of the namespace above, which need not be the host's. When they claim to map
// the host's root, what belongs to it (what sysfs shows does) has to look like that; if it does not, they are
// not the host's.
bool counts_from_host(const std::vector<Line>& lines, unsigned long owner_of_sys) {
  for (const Line& line : lines) {
    if (line.outside == 0 && line.count > 0) return line.inside == owner_of_sys;
  }
  return true;
}

// Root in here must be nobody out there.
void read_map(Attempts& a, const char* path, unsigned long owner_of_sys) {
  const std::vector<Line> lines = lines_of(path);
  if (!counts_from_host(lines, owner_of_sys))
    return a.stopped("ids are those of a user namespace between here and the host, without the host's root");
  for (const Line& line : lines) {
    if (line.outside < kLowestForeignId)
      a.got(std::string(path) + " maps id " + std::to_string(line.inside) + " to the host's id " +
            std::to_string(line.outside));
    else
      a.stopped("ids map to " + std::to_string(line.outside) + " and up on the host");
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
  struct stat sys{};
  if (::stat("/sys/devices/system", &sys) < 0) sys = {};
  read_map(a, "/proc/self/uid_map", sys.st_uid);
  read_map(a, "/proc/self/gid_map", sys.st_gid);
  for (const char* path : {"/proc/self/uid_map", "/proc/1/uid_map", "/proc/self/gid_map"})
    rewrite_map(a, path, "0 0 1\n");
  become_unmapped(a);
}

}  // namespace

extern const Probe probe_uid_map = {
    "uid_map", "be, or become, an id of the host through the user namespace's map", nullptr, run};

}  // namespace osb::probe
