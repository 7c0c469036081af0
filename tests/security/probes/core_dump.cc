#include <signal.h>
#include <sys/resource.h>

#include "tools.h"

namespace osb::probe {
namespace {

// When core_pattern names a program, the kernel starts it as the host's root, outside, with the crashed
// process's memory as input. A limit of zero does not stop that, a limit of one byte does: so every way to
// another limit is tried before the crash.
void as_it_is() {}
void none() {
  const rlimit value = {0, 0};
  ::setrlimit(RLIMIT_CORE, &value);
}
void none_by_prlimit() {
  const rlimit value = {0, 0};
  ::syscall(SYS_prlimit64, 0, RLIMIT_CORE | 1L << 32, &value, nullptr);
}
void none_keeping_the_old() {
  const rlimit value = {0, 0};
  rlimit old = {};
  ::syscall(SYS_prlimit64, 0, RLIMIT_CORE, &value, &old);
}
void all() {
  const rlimit value = {RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(RLIMIT_CORE, &value);
}

void crash(Attempts& a, const char* how, void (*prepare)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    prepare();
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
    ::_exit(0);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child < 0 || !WIFSIGNALED(status)) return a.got(std::string("a crash cannot be tried: ") + how);
  if (WCOREDUMP(status))
    a.got(std::string("the kernel dumped a crashed process, to a file or a handler of the host: ") + how);
  else
    a.stopped("the crashed process was not dumped", how);
}

void run(Attempts& a, Args) {
  // Where core files go to the working directory, to one that is taken away again.
  Scratch scratch;
  if (scratch.ok() && ::chdir(scratch.path()) < 0) return void(a.call("chdir(2)", "", -1));
  crash(a, "limit as it is", as_it_is);
  crash(a, "after setrlimit to 0", none);
  crash(a, "after prlimit to 0", none_by_prlimit);
  crash(a, "after prlimit to 0, asking for the former value", none_keeping_the_old);
  crash(a, "after setrlimit to all", all);
}

}  // namespace

extern const Probe probe_core_dump = {
    "core_dump", "crash, with every limit on core files, to have the host's core handler run", nullptr, run};

}  // namespace osb::probe
