#include "cli/runsc_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/strings.h"
#include "sys/process.h"
#include "sys/seccomp.h"

namespace osb::cli {
namespace {

constexpr std::array<const char*, 6> kPlaces = {"/usr/local/sbin/runsc", "/usr/local/bin/runsc",
                                                "/usr/sbin/runsc",       "/usr/bin/runsc",
                                                "/sbin/runsc",           "/bin/runsc"};
constexpr int kMostMillis = 20'000;
constexpr size_t kMostSaid = 400;

Result<Fd> open_runsc(const server::Config& config) {
  if (!config.secure.runsc.empty()) {
    auto given = open_at(AT_FDCWD, config.secure.runsc, O_RDONLY);
    if (given) return given;
    return fail(Code::invalid_argument,
                fmt::format("{}: {}; correct the path, or install runsc",
                            config.place("secure_runtime.runsc"), given.error().message));
  }
  for (const char* place : kPlaces) {
    if (auto found = open_at(AT_FDCWD, place, O_RDONLY)) return found;
  }
  return fail(
      Code::invalid_argument,
      "this host has no runsc, and the configuration offers sandboxes under it\n  remedy: install gVisor "
      "(Debian's package is runsc, of 2024 or later), or name it: runsc = \"/path\" below [secure_runtime]");
}

// Says what does not work, where runsc would.
bool works(long result, const char* what, int said) {
  if (result >= 0) return true;
  ::dprintf(said, "%s: %s", what, ::strerror(errno));
  return false;
}

// From here on nobody outlives the one who started it, however that one ends. It may have ended before.
bool is_bound_to(int parent) {
  struct pollfd ended{parent, POLLIN, 0};
  return ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::poll(&ended, 1, 0) == 0;
}

// The host's mounts must not learn of these: without the first one the others would cover what everybody has.
// What runsc keeps, and what it leaves behind, is in memory that goes with the attempt.
bool make_own_mounts(int said) {
  return works(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "separate its mounts", said) &&
         works(::mount("proc", "/proc", "proc", 0, nullptr), "mount a procfs for it", said) &&
         works(::mount("tmpfs", "/tmp", "tmpfs", 0, "mode=0700,size=64m"), "mount a /tmp for it", said);
}

// In a pid namespace of its own, so that nothing it leaves behind outlives the attempt, and in a network that
// leads nowhere. Only returns when it fails.
void become_runsc(int executable, const std::string& platform, int service, int said) {
  if (!is_bound_to(service)) return;
  auto self = sys::open_pidfd(::getpid());
  if (!self) return void(::dprintf(said, "%s", self.error().message.c_str()));
  if (!works(::unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC), "make its namespaces",
             said))
    return;
  pid_t first = ::fork();
  if (first > 0) {
    int status = 0;
    ::waitpid(first, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  if (!works(first, "fork", said) || !is_bound_to(self->get()) || !make_own_mounts(said)) return;
  ::dup2(said, 1);
  ::dup2(said, 2);
  std::string words[] = {"runsc",
                         "--root=/tmp/state",
                         "--platform=" + platform,
                         "--network=host",
                         "--ignore-cgroups",
                         "--overlay2=none",
                         "do",
                         "/bin/true"};
  char* arguments[std::size(words) + 1] = {};
  for (size_t i = 0; i < std::size(words); ++i) arguments[i] = words[i].data();
  char* environment[] = {nullptr};
  // As the launcher starts it.
  if (int status = sys::refuse_barrier_registration(); status < 0)
    return void(::dprintf(said, "refuse a call: %s", ::strerror(-status)));
  ::syscall(SYS_execveat, executable, "", arguments, environment, AT_EMPTY_PATH);
}

std::string last_words(int said) {
  std::string text = read_all(said, 1 << 16).value_or("");
  text = trim(text);
  if (text.size() > kMostSaid) text = text.substr(text.size() - kMostSaid);
  for (char& c : text) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return text.empty() ? "it said nothing" : text;
}

Result<void> try_platform(int executable, const std::string& platform) {
  Fd service = TRY(sys::open_pidfd(::getpid()));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) < 0) return fail_errno("pipe");
  Fd read(pipe[0]), write(pipe[1]);
  pid_t pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    become_runsc(executable, platform, service.get(), write.get());
    ::_exit(127);
  }
  write.reset();
  auto process = sys::open_pidfd(pid);
  struct pollfd ended{process ? process->get() : -1, POLLIN, 0};
  bool late = process && ::poll(&ended, 1, kMostMillis) == 0;
  // With it, by PR_SET_PDEATHSIG, the first process of its pid namespace, and so all others.
  if (!process || late) ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!process) return std::unexpected(std::move(process.error()));
  if (late) return fail(Code::timeout, fmt::format("{}: it hung", platform));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(Code::unsupported, fmt::format("{}: {}", platform, last_words(read.get())));
}

}  // namespace

Result<FoundRunsc> find_runsc(const server::Config& config) {
  Fd executable = TRY(open_runsc(config));
  std::vector<std::string> platforms = {"systrap", "ptrace"};
  if (!config.secure.platform.empty()) platforms = {config.secure.platform};
  std::string why;
  for (const std::string& platform : platforms) {
    auto tried = try_platform(executable.get(), platform);
    if (tried) return FoundRunsc{std::move(executable), platform};
    why.append(why.empty() ? "" : "; ").append(tried.error().message);
  }
  return fail(Code::unsupported,
              fmt::format("runsc runs nothing on this host: {}\n  remedy: use gVisor of 2023 "
                          "or later, or leave it out of [runtime] and [secure_runtime]",
                          why));
}

}  // namespace osb::cli
