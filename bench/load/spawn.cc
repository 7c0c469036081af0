#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "http.h"

extern char** environ;

namespace load {
namespace {

constexpr double kStartLimitUs = 20e6;

void nap(long microseconds) {
  timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000};
  ::nanosleep(&t, nullptr);
}

std::vector<char*> pointers(const Words& argv) {
  std::vector<char*> out;
  for (const std::string& word : argv) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

bool answers(int port, const std::string& path) {
  int fd = connect_loopback(port);
  if (fd < 0) return false;
  timeval limit = {2, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  std::string request = make_request("GET", path, port);
  Response response;
  char buffer[4096];
  bool fine = ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0;
  while (fine && !response.complete()) {
    ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    fine = got > 0 && response.feed({buffer, static_cast<size_t>(got)});
  }
  ::close(fd);
  return fine && response.status() == 200;
}

}  // namespace

std::optional<double> time_program(const Words& argv, Until until, std::string& problem) {
  int out[2];
  if (::pipe2(out, O_CLOEXEC) < 0) return std::nullopt;
  auto args = pointers(argv);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  pid_t pid = -1;
  double start = now_us();
  int error = ::posix_spawnp(&pid, args[0], &actions, nullptr, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  double first = 0;
  char buffer[4096];
  if (error == 0) {
    while (::read(out[0], buffer, sizeof buffer) > 0) {
      if (first == 0) first = now_us();
    }
  }
  ::close(out[0]);
  if (error != 0) {
    problem = std::string(args[0]) + ": " + strerror(error);
    return std::nullopt;
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  double end = now_us();
  if (status != 0) {
    problem = std::string(args[0]) + ": wait status " + std::to_string(status);
    return std::nullopt;
  }
  if (until == Until::exit) return end - start;
  if (first == 0) {
    problem = std::string(args[0]) + ": no output";
    return std::nullopt;
  }
  return first - start;
}

std::optional<Started> start_service(int port, const std::string& path, const std::string& log,
                                     const Words& argv, std::string& problem) {
  auto args = pointers(argv);
  double start = now_us();
  pid_t pid = ::fork();
  if (pid == 0) {
    // A bench that is interrupted must not leave a service behind.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    int null = ::open("/dev/null", O_RDWR);
    int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (null < 0 || out < 0 || ::dup2(null, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0) ::_exit(126);
    ::execvp(args[0], args.data());
    ::_exit(127);
  }
  if (pid < 0) return std::nullopt;
  while (now_us() - start < kStartLimitUs) {
    if (answers(port, path)) return Started{pid, now_us() - start};
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) {
      problem = "the service ended before it answered: wait status " + std::to_string(status);
      return std::nullopt;
    }
    nap(200);
  }
  stop_service(pid);
  problem = "it did not answer GET " + path + " in time";
  return std::nullopt;
}

bool stop_service(pid_t pid) {
  ::kill(pid, SIGTERM);
  for (int i = 0; i < 10000; ++i) {
    if (::waitpid(pid, nullptr, WNOHANG) != 0) return true;
    nap(1000);
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return false;
}

int spawn_rate(const Words& argv, int workers, double seconds) {
  int results[2];
  if (::pipe2(results, O_CLOEXEC) < 0) return 1;
  double start = now_us();
  std::vector<pid_t> children;
  for (int i = 0; i < workers; ++i) {
    pid_t pid = ::fork();
    if (pid < 0) return 1;
    if (pid > 0) {
      children.push_back(pid);
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    long cycles = 0;
    std::string problem;
    while (now_us() - start < seconds * 1e6) {
      // Several runs of one command line must not collide where the program wants a name: {} becomes unique.
      Words words = argv;
      for (std::string& word : words) {
        size_t hole = word.find("{}");
        if (hole != std::string::npos) {
          word.replace(hole, 2, std::to_string(::getpid()) + "-" + std::to_string(cycles));
        }
      }
      if (!time_program(words, Until::exit, problem)) {
        fprintf(stderr, "bench-load: %s\n", problem.c_str());
        ::_exit(1);
      }
      ++cycles;
    }
    ::_exit(::write(results[1], &cycles, sizeof cycles) == sizeof cycles ? 0 : 1);
  }
  long total = 0;
  bool failed = false;
  for (pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    long cycles = 0;
    failed = failed || status != 0;
    if (status == 0 && ::read(results[0], &cycles, sizeof cycles) == sizeof cycles) total += cycles;
  }
  double took = (now_us() - start) / 1e6;
  printf("{\"workers\":%d,\"seconds\":%.3f,\"cycles\":%ld,\"per_second\":%.1f}\n", workers, took, total,
         static_cast<double>(total) / took);
  return failed ? 1 : 0;
}

}  // namespace load
