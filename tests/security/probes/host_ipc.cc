#include <mqueue.h>
#include <stdlib.h>
#include <sys/shm.h>

#include "tools.h"

namespace osb::probe {
namespace {

void run(Attempts& a, Args keys) {
  for (const char* table : {"shm", "sem", "msg"}) {
    const auto text = read_file(std::string("/proc/sysvipc/") + table);
    if (!text) continue;
    const bool empty = text->find('\n') + 1 >= text->size();
    if (empty)
      a.stopped("no System V object is visible", table);
    else
      a.got(std::string("System V objects are visible: ") + table);
  }
  for (const char* key : keys) {
    const long id = ::shmget(static_cast<key_t>(std::strtol(key, nullptr, 0)), 0, 0);
    a.call("shmget(2)", std::string("the host's segment ") + key, id);
  }
}

}  // namespace

extern const Probe probe_host_ipc = {
    "host_ipc", "reach System V objects of the host (arguments: keys of shared memory segments)", nullptr,
    run};

}  // namespace osb::probe
