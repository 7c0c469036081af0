#pragma once

// Other programs, timed from outside: the peers, and the service's own start.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace load {

using Words = std::vector<std::string>;

enum class Until { first_byte, exit };

// Microseconds from before the start until the first byte of standard output, or until the program was
// reaped. The program is always waited for. Absent, with the reason in `problem`, when it did not start or
// did not end with 0.
std::optional<double> time_program(const Words& argv, Until until, std::string& problem);

// Starts a server, its output going to the file `log`, and asks GET `path` on `port` until the answer is 200.
struct Started {
  pid_t pid = -1;
  double us = 0;
};
std::optional<Started> start_service(int port, const std::string& path, const std::string& log,
                                     const Words& argv, std::string& problem);
// SIGTERM, then waits; SIGKILL after ten seconds. False when it had to be killed.
bool stop_service(pid_t pid);

// `workers` loops that each run the program to its end, for `seconds`. Prints one JSON line.
int spawn_rate(const Words& argv, int workers, double seconds);

}  // namespace load
