// floor: the bare kernel work behind a sandbox, timed.
//
//   floor serve DIR            reads `f1`, `f2`, `freeze`, `thaw` or `quit` per line, answers each with
//                              microseconds
//   floor f1|f2 DIR [N]        N samples (100), one JSON line
//   floor f3 DIR [--workers N] [--seconds S]   sustained create + run + delete, one JSON line
//
// F1: all namespaces but the user's, an overlay, proc and a new root; then join it and run `bash -c 'echo
// x'`, until the first byte. F2: join a running one and run `bash -c true`, until it was reaped. F3: F1 to
// its end and removal, over and over. freeze, thaw: all processes of a cgroup, until the kernel says so.
// --lower PATH chooses the root below the overlay (default: /).

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "freezer.h"
#include "sandbox.h"

namespace {

using namespace floorbench;

double now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

double f1(const Place& place) {
  double start = now_us();
  Sandbox sandbox = create(place);
  Command command = enter(sandbox, "echo x");
  wait_first_byte(command);
  double took = now_us() - start;
  finish(command);
  destroy(sandbox);
  return took;
}

double f2(const Sandbox& sandbox) {
  double start = now_us();
  Command command = enter(sandbox, "true");
  finish(command);
  return now_us() - start;
}

void print_samples(const char* id, std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  auto at = [&](double q) {
    return samples[static_cast<size_t>(q * static_cast<double>(samples.size() - 1))];
  };
  printf("{\"id\":\"%s\",\"count\":%zu,\"min_us\":%.1f,\"median_us\":%.1f,\"p99_us\":%.1f}\n", id,
         samples.size(), samples.front(), at(0.5), at(0.99));
}

int measure(const Place& place, const char* id, int count) {
  std::vector<double> samples;
  if (strcmp(id, "f1") == 0) {
    for (int i = 0; i < count; ++i) samples.push_back(f1(place));
  } else {
    Sandbox sandbox = create(place);
    for (int i = 0; i < count; ++i) samples.push_back(f2(sandbox));
    destroy(sandbox);
  }
  print_samples(id, std::move(samples));
  return 0;
}

double timed(Freezer& freezer, void (Freezer::*change)()) {
  double start = now_us();
  (freezer.*change)();
  return now_us() - start;
}

int serve(const Place& place) {
  Sandbox running = create(place);
  Sandbox stoppable = create(place);
  std::unique_ptr<Freezer> freezer;  // only where it is asked for
  char line[64];
  while (fgets(line, sizeof line, stdin) != nullptr) {
    line[strcspn(line, "\r\n")] = 0;
    if (strcmp(line, "f1") == 0) {
      printf("%.1f\n", f1(place));
    } else if (strcmp(line, "f2") == 0) {
      printf("%.1f\n", f2(running));
    } else if (strcmp(line, "freeze") == 0 || strcmp(line, "thaw") == 0) {
      if (!freezer) freezer = std::make_unique<Freezer>(stoppable.pid);
      printf("%.1f\n", timed(*freezer, line[0] == 'f' ? &Freezer::freeze : &Freezer::thaw));
    } else if (strcmp(line, "quit") == 0) {
      break;
    } else {
      printf("error: unknown command '%s'; use f1, f2, freeze, thaw or quit\n", line);
    }
    fflush(stdout);
  }
  freezer.reset();
  destroy(stoppable);
  destroy(running);
  return 0;
}

struct Tally {
  long cycles;
  double end_us;
};

int sustained(const Place& place, int workers, double seconds) {
  auto* tallies = static_cast<Tally*>(mmap(nullptr, sizeof(Tally) * static_cast<size_t>(workers),
                                           PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (tallies == MAP_FAILED) die("mmap");
  double start = now_us();
  std::vector<pid_t> children;
  for (int i = 0; i < workers; ++i) {
    pid_t pid = fork();
    if (pid < 0) die("fork");
    if (pid > 0) {
      children.push_back(pid);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (now_us() - start < seconds * 1e6) {
      f1(place);
      ++tallies[i].cycles;
    }
    tallies[i].end_us = now_us();
    _exit(0);
  }
  long cycles = 0;
  double end = start;
  for (int i = 0; i < workers; ++i) {
    int status = 0;
    if (waitpid(children[static_cast<size_t>(i)], &status, 0) < 0 || status != 0) die("a worker failed");
    cycles += tallies[i].cycles;
    end = std::max(end, tallies[i].end_us);
  }
  double took = (end - start) / 1e6;
  printf("{\"id\":\"f3\",\"workers\":%d,\"seconds\":%.3f,\"cycles\":%ld,\"per_second\":%.1f}\n", workers,
         took, cycles, static_cast<double>(cycles) / took);
  return 0;
}

int usage() {
  fprintf(stderr,
          "usage: floor serve DIR | floor f1|f2 DIR [COUNT] | floor f3 DIR [--workers N] [--seconds S]\n"
          "       --lower PATH  the root below the overlay (default /)\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Place place = {"", "/"};
  int workers = 1;
  double seconds = 3;
  std::vector<const char*> words;
  for (int i = 1; i < argc; ++i) {
    bool more = i + 1 < argc;
    if (strcmp(argv[i], "--lower") == 0 && more) {
      place.lower = argv[++i];
    } else if (strcmp(argv[i], "--workers") == 0 && more) {
      workers = atoi(argv[++i]);
    } else if (strcmp(argv[i], "--seconds") == 0 && more) {
      seconds = atof(argv[++i]);
    } else {
      words.push_back(argv[i]);
    }
  }
  if (words.size() < 2 || workers < 1 || seconds <= 0) return usage();
  int count = words.size() > 2 ? atoi(words[2]) : 100;
  if (count < 1) return usage();
  std::string mode = words[0];

  // A relative directory would mean something else after the pivot.
  char* dir = words[1][0] == '/' ? strdup(words[1]) : nullptr;
  if (dir == nullptr) {
    fprintf(stderr, "floor: DIR must be absolute\n");
    return 2;
  }
  place.dir = dir;
  free(dir);
  if (mode != "serve" && mode != "f1" && mode != "f2" && mode != "f3") return usage();
  prepare(place);
  if (mode == "serve") return serve(place);
  if (mode == "f3") return sustained(place, workers, seconds);
  return measure(place, mode.c_str(), count);
}
