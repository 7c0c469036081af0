#include <signal.h>
#include <stdlib.h>

#include "tools.h"

namespace osb::probe {
namespace {

std::string comm_of(const std::string& pid) {
  std::string name = read_file("/proc/" + pid + "/comm").value_or("");
  while (name.ends_with('\n')) name.pop_back();
  return name;
}

void look_around(Attempts& a) {
  if (const auto self = read_link("/proc/self"); self && *self != std::to_string(::getpid()))
    a.got("/proc shows the processes of another pid namespace");
  const std::string status = read_file("/proc/self/status").value_or("");
  const size_t at = status.find("NSpid:");
  if (at != std::string::npos) {
    const std::string_view numbers = std::string_view(status).substr(at + 7, status.find('\n', at) - at - 7);
    if (numbers.find('\t') != std::string_view::npos) a.got("/proc belongs to a pid namespace further out");
  }
  if (comm_of("2") == "kthreadd") a.got("kernel threads are visible");
  a.stopped("/proc lists only the processes of this pid namespace");
}

// `victim` is PID:NAME of a process outside, named so that a process of ours with the same number is not
// taken for it.
void reach(Attempts& a, const std::string& victim) {
  const size_t colon = victim.find(':');
  if (colon == std::string::npos) return;
  const std::string pid = victim.substr(0, colon), name = victim.substr(colon + 1);
  for (const std::string& seen : processes())
    if (comm_of(seen) == name) a.got("sees " + name + " as process " + seen);
  const pid_t number = static_cast<pid_t>(std::strtol(pid.c_str(), nullptr, 10));
  const bool stranger = comm_of(pid).empty() || comm_of(pid) == name;
  File pidfd = static_cast<int>(::syscall(SYS_pidfd_open, number, 0));
  const Answer opened(pidfd.fd());
  const Answer signalled(::kill(number, 0));
  if (!stranger) return a.stopped("the number belongs to a process of this namespace", pid);
  a.call("kill(2)", "signal 0 to " + name, signalled);
  a.call("pidfd_open(2)", name, opened);
}

void run(Attempts& a, Args victims) {
  look_around(a);
  for (const std::string victim : victims) reach(a, victim);
}

}  // namespace

extern const Probe probe_host_processes = {
    "host_processes", "see or signal processes outside (arguments: PID:NAME of such a process)", nullptr,
    run};

}  // namespace osb::probe
