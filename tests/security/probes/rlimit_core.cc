#include <sys/resource.h>

#include "tools.h"

namespace osb::probe {
namespace {

// One byte is the only limit with which the kernel neither writes a core file nor starts a core handler; zero
// lets the handler run. Whether a host has a handler or not, nobody inside may come by another limit.
constexpr rlim_t kSafe = 1;

rlimit current() {
  rlimit value = {};
  ::syscall(SYS_prlimit64, 0, RLIMIT_CORE, nullptr, &value);
  return value;
}

void look(Attempts& a, const char* how, rlimit wanted, long (*set)(const rlimit*)) {
  // The attempt works when the limit is another one afterwards, whatever the call answered.
  const Answer changed = in_child([&] {
    const long rc = set(&wanted);
    const int error = errno;
    const rlimit now = current();
    if (now.rlim_cur != kSafe || now.rlim_max != kSafe) return 0L;
    errno = rc < 0 ? error : ECANCELED;
    return -1L;
  });
  if (changed.worked())
    a.got(std::string("the limit on core files is another one: ") + how);
  else if (changed.error == ECANCELED)
    a.stopped("answered without effect", how);
  else
    a.call("the call", how, changed);
}

long by_setrlimit(const rlimit* value) { return ::syscall(SYS_setrlimit, RLIMIT_CORE, value); }
long by_setrlimit_with_a_high_bit(const rlimit* value) {
  return ::syscall(SYS_setrlimit, RLIMIT_CORE | 1L << 32, value);
}
long by_prlimit(const rlimit* value) { return ::syscall(SYS_prlimit64, 0, RLIMIT_CORE, value, nullptr); }
long by_prlimit_of_the_parent(const rlimit* value) {
  return ::syscall(SYS_prlimit64, ::getpid(), RLIMIT_CORE | 1L << 40, value, nullptr);
}
long by_prlimit_with_old(const rlimit* value) {
  rlimit old = {};
  return ::syscall(SYS_prlimit64, 0, RLIMIT_CORE, value, &old);
}

void run(Attempts& a, Args) {
  const rlimit now = current();
  if (now.rlim_cur != kSafe || now.rlim_max != kSafe)
    return a.got("the limit on core files is not one byte: a crash may reach the host's core handler");
  for (const rlimit value : {rlimit{0, 0}, rlimit{0, kSafe}, rlimit{RLIM_INFINITY, RLIM_INFINITY}}) {
    look(a, "setrlimit", value, by_setrlimit);
    look(a, "setrlimit, high half set", value, by_setrlimit_with_a_high_bit);
    look(a, "prlimit64", value, by_prlimit);
    look(a, "prlimit64 by number", value, by_prlimit_of_the_parent);
    look(a, "prlimit64 with the former value", value, by_prlimit_with_old);
  }
}

}  // namespace

extern const Probe probe_rlimit_core = {
    "rlimit_core", "change the limit on core files, on which it depends whether a core handler runs", nullptr,
    run};

}  // namespace osb::probe
