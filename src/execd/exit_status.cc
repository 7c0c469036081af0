#include "execd/exit_status.h"

#include <signal.h>
#include <sys/wait.h>

namespace osb::execd {

bool ExitStatus::signalled() const { return WIFSIGNALED(status_); }

int ExitStatus::signal() const { return signalled() ? WTERMSIG(status_) : 0; }

int ExitStatus::api_code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }

std::string ExitStatus::text() const {
  if (!signalled()) return "exit status " + std::to_string(WEXITSTATUS(status_));
  std::string_view name = signal_text(signal());
  std::string out = "signal: ";
  out += name.empty() ? "signal " + std::to_string(signal()) : std::string(name);
  if (WCOREDUMP(status_)) out += " (core dumped)";
  return out;
}

std::string time_limit_text(std::chrono::milliseconds limit) {
  bool whole = limit.count() % 1000 == 0;
  return "time limit of " + std::to_string(whole ? limit.count() / 1000 : limit.count()) +
         (whole ? " s" : " ms");
}

std::string_view signal_text(int signal) {
  switch (signal) {
    case SIGABRT:
      return "aborted";
    case SIGALRM:
      return "alarm clock";
    case SIGBUS:
      return "bus error";
    case SIGCHLD:
      return "child exited";
    case SIGCONT:
      return "continued";
    case SIGFPE:
      return "floating point exception";
    case SIGHUP:
      return "hangup";
    case SIGILL:
      return "illegal instruction";
    case SIGINT:
      return "interrupt";
    case SIGIO:
      return "I/O possible";
    case SIGKILL:
      return "killed";
    case SIGPIPE:
      return "broken pipe";
    case SIGPROF:
      return "profiling timer expired";
    case SIGPWR:
      return "power failure";
    case SIGQUIT:
      return "quit";
    case SIGSEGV:
      return "segmentation fault";
    case SIGSTKFLT:
      return "stack fault";
    case SIGSTOP:
      return "stopped (signal)";
    case SIGSYS:
      return "bad system call";
    case SIGTERM:
      return "terminated";
    case SIGTRAP:
      return "trace/breakpoint trap";
    case SIGTSTP:
      return "stopped";
    case SIGTTIN:
      return "stopped (tty input)";
    case SIGTTOU:
      return "stopped (tty output)";
    case SIGURG:
      return "urgent I/O condition";
    case SIGUSR1:
      return "user defined signal 1";
    case SIGUSR2:
      return "user defined signal 2";
    case SIGVTALRM:
      return "virtual timer expired";
    case SIGWINCH:
      return "window changed";
    case SIGXCPU:
      return "CPU time limit exceeded";
    case SIGXFSZ:
      return "file size limit exceeded";
    default:
      return {};
  }
}

int signal_number(std::string_view name) {
  if (name == "SIGINT") return SIGINT;
  if (name == "SIGTERM") return SIGTERM;
  if (name == "SIGKILL") return SIGKILL;
  if (name == "SIGQUIT") return SIGQUIT;
  if (name == "SIGHUP") return SIGHUP;
  return 0;
}

}  // namespace osb::execd
