#include "tools.h"

namespace osb::probe {
namespace {

// /proc/sysrq-trigger and its like are opened for writing and closed again: no key is ever sent.
void writes(Attempts& a) {
  for (const char* path :
       {"/proc/sysrq-trigger", "/proc/mtrr", "/proc/timer_stats", "/proc/dynamic_debug/control"})
    a.call("open", std::string(path) + " for writing", writable(path));
  for (const char* top : {"/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/asound",
                          "/proc/driver", "/proc/tty"}) {
    walk(top, 6, [&](const std::string& path) {
      const Answer answer = writable(path);
      a.call("open", "below " + std::string(top) + " for writing", answer);
      return !answer.worked();
    });
  }
}

void reads(Attempts& a) {
  for (const char* path : {"/proc/kcore", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup",
                           "/proc/slabinfo", "/proc/vmallocinfo", "/proc/pagetypeinfo"}) {
    File file = ::open(path, O_RDONLY | O_CLOEXEC);
    char byte;
    if (!file.ok())
      a.call("open", path, -1);
    else if (const ssize_t n = ::read(file.fd(), &byte, 1); n == 0)
      a.stopped("empty", path);
    else
      a.call("read(2)", path, n);
  }
}

// Addresses of the kernel are shown as zeros to those who may not know them.
void addresses(Attempts& a, const char* path) {
  const auto text = read_file(path, 65536);
  if (!text) return void(a.call("open", path, -1));
  size_t zeros = 0, others = 0;
  for (size_t at = 0; at < text->size(); at = text->find('\n', at) + 1) {
    const std::string first = text->substr(at, text->find_first_of(" -", at + 2) - at);
    (first.find_first_not_of("0 ") == std::string::npos ? zeros : others) += 1;
    if (text->find('\n', at) == std::string::npos) break;
  }
  // The per-processor symbols really are at low addresses; a text full of large ones is the leak.
  if (others > zeros)
    a.got(std::string(path) + " shows kernel addresses");
  else
    a.stopped("zeros in place of addresses", path);
}

void run(Attempts& a, Args) {
  writes(a);
  reads(a);
  addresses(a, "/proc/kallsyms");
  addresses(a, "/proc/iomem");
}

}  // namespace

extern const Probe probe_proc_files = {
    "proc_files", "use dangerous files of /proc (sysrq-trigger, kcore, kallsyms, irq, bus, ...)", nullptr,
    run};

}  // namespace osb::probe
