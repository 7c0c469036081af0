// osb-probe: the escape attempts as one program.
//
//   osb-probe list              name <TAB> what it tries
//   osb-probe list --unsafe     name <TAB> why its run without protection is left out
//   osb-probe run NAME [ARGS]   one line, and exit 0 refused, 10 succeeded (a breach), 20 not applicable here

#include <string.h>

#include <cstdio>

#include "tools.h"

namespace osb::probe {
int privileged();  // setuid.cc: what a set-user-id copy of this program runs

namespace {

constexpr unsigned kSecondsAllowed = 25;

int list(bool unsafe) {
  for (const Probe* probe : all_probes()) {
    if (!unsafe) std::printf("%s\t%s\n", probe->name, probe->tries);
    if (unsafe && probe->unsafe) std::printf("%s\t%s\n", probe->name, probe->unsafe);
  }
  return 0;
}

// The probe runs in a child, so that one that hangs or is killed ends as an error (1): what it had tried
// until then is lost, and a probe without a verdict proves nothing. Attempts that a filter may answer with a
// signal use in_child.
int run(const Probe& probe, Args args) {
  const pid_t child = ::fork();
  if (child < 0) return std::perror("osb-probe: fork"), 1;
  if (child == 0) {
    ::alarm(kSecondsAllowed);
    Attempts attempts;
    probe.run(attempts, args);
    std::printf("%s\n", attempts.explain().c_str());
    std::fflush(stdout);
    ::_exit(attempts.verdict());
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::printf("the probe itself was killed by SIG%s\n", ::sigabbrev_np(WTERMSIG(status)));
  return 1;
}

}  // namespace
}  // namespace osb::probe

int main(int argc, char** argv) {
  using namespace osb::probe;
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "list") return list(argc > 2 && std::string_view(argv[2]) == "--unsafe");
  if (verb == "privileged") return privileged();
  if (verb == "run" && argc > 2) {
    for (const Probe* probe : all_probes())
      if (probe->name == std::string_view(argv[2]))
        return run(*probe, Args(argv + 3, static_cast<size_t>(argc - 3)));
    std::fprintf(stderr, "osb-probe: no probe named %s; see: osb-probe list\n", argv[2]);
    return 2;
  }
  std::fprintf(stderr, "usage: osb-probe list [--unsafe] | run NAME [ARGS]\n");
  return 2;
}
