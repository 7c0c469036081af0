#include "sys/file_lock.h"

#include <sys/file.h>
#include <unistd.h>

#include <chrono>

namespace osb::sys {

bool lock_now(int file) { return ::flock(file, LOCK_EX | LOCK_NB) == 0; }

bool lock_soon(int file) {
  constexpr auto kPatience = std::chrono::seconds(1);
  auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (!lock_now(file)) {
    if (std::chrono::steady_clock::now() >= give_up) return false;
    ::usleep(5000);
  }
  return true;
}

}  // namespace osb::sys
