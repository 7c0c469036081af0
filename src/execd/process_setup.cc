#include "execd/process_setup.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/strings.h"
#include "execd/spawn.h"
#include "sys/bpf.h"
#include "sys/short_turns.h"

namespace osb::execd {
namespace {

void open_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR);  // the lowest free number: this one
  }
}

void reset_signals() {
  struct sigaction by_default{}, ignore{};
  by_default.sa_handler = SIG_DFL;
  ignore.sa_handler = SIG_IGN;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &by_default, nullptr);
  ::sigaction(SIGPIPE, &ignore, nullptr);
}

}  // namespace

void set_up_process() {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  // For a daemon that is not process 1, in a container: orphans come here all the same.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  open_standard_descriptors();
  reset_signals();
  // Before it is raised, which is for execd's own use: what it starts gets back this one.
  remember_open_files_limit();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  // Whoever asks it something would otherwise wait for what it has just started.
  if (sys::take_short_turns()) give_usual_turns();
  // Several heaps would only keep memory apart: there is one busy thread.
  ::mallopt(M_ARENA_MAX, 1);
}

void set_up_log(const Options& options, const Environment& env) {
  log::set_role("execd");
  log::set_level(options.log_level <= 3   ? log::Level::error
                 : options.log_level == 4 ? log::Level::warn
                 : options.log_level <= 6 ? log::Level::info
                                          : log::Level::debug);
  std::string target = env.get("EXECD_LOG_FILE");
  if (target.empty()) target = std::string(trim(split(env.get("OPENSANDBOX_LOG_OUTPUT"), ',').front()));
  if (target.empty() || target == "stderr") return;
  if (target == "stdout") {
    ::dup2(STDOUT_FILENO, STDERR_FILENO);
    return;
  }
  auto file = open_at(AT_FDCWD, target, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (file) {
    ::dup2(file->get(), STDERR_FILENO);
  } else {
    log::warn("log file not opened", {{"reason", file.error().message}});
  }
}

Result<void> set_up_clone3(const Environment& env) {
  std::string value = to_lower(trim(env.get("EXECD_CLONE3_COMPAT")));
  for (std::string_view off : {"", "0", "false", "off", "no"}) {
    if (value == off) return {};
  }
  bool on = false;
  for (std::string_view word : {"1", "true", "yes", "on", "reexec"}) on = on || value == word;
  if (!on)
    return fail(Code::invalid_argument, "EXECD_CLONE3_COMPAT='" + value + "' means nothing; use 1 or 0");
  // Every architecture execd is built for has the same number for clone3.
  auto program = sys::answer_one_call(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return fail_errno("no_new_privs");
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) return fail_errno("clone3 filter");
  return {};
}

}  // namespace osb::execd
