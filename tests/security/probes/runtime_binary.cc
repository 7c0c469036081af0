#include <string.h>

#include "tools.h"

namespace osb::probe {
namespace {

// CVE-2019-5736 and its kind: a runtime that can be found through /proc is overwritten as soon as it no
// longer runs. ETXTBSY therefore counts as a way in: permission was given, only the moment was wrong. Seals
// close it for good.
void overwrite(Attempts& a, const std::string& link) {
  File readable = ::open(link.c_str(), O_RDONLY | O_CLOEXEC);
  const Answer read(readable.fd());
  if (readable.ok()) {
    const int seals = ::fcntl(readable.fd(), F_GET_SEALS);
    if (seals >= 0 && (seals & F_SEAL_WRITE) != 0) return a.stopped("sealed against writing", link);
  }
  Answer opened = writable(link);
  if (!opened.worked() && readable.ok()) opened = writable("/proc/self/fd/" + std::to_string(readable.fd()));
  if (!opened.worked() && opened.error == ETXTBSY)
    a.got(link + " may be written once it is no longer running");
  else
    a.call("open", link + " for writing", opened);
}

void run(Attempts& a, Args) {
  overwrite(a, "/proc/1/exe");
  for (const std::string& pid : processes()) {
    const std::string link = "/proc/" + pid + "/exe";
    const std::string target = read_link(link).value_or("");
    // Programs of the sandbox's own file system are its own to change; what has no name in it came from
    // outside.
    if (pid == "1" || target.empty() || ::access(target.c_str(), F_OK) == 0) continue;
    overwrite(a, link);
  }
}

}  // namespace

extern const Probe probe_runtime_binary = {
    "runtime_binary", "overwrite the runtime's executable through /proc/*/exe (class of CVE-2019-5736)",
    nullptr, run};

}  // namespace osb::probe
