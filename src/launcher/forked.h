#pragma once

// Work that takes too long for the launcher's one thread, done by a child with the launcher's rights that
// ends with it. The end of the child is awaited like everything else; then it has said how it went.

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/fd.h"

namespace osb::launcher {

struct Forked {
  pid_t pid = -1;
  Fd ended;   // a pidfd: readable when it has ended
  Fd report;  // readable when it is halfway, or has said how it went
  Fd go;
  std::string heard = {};
};

Result<Forked> fork_work(const std::function<Result<void>()>& work);

// Work that stops halfway, until it is told to go on: it calls what it is given there.
using Halfway = std::function<Result<void>()>;
Result<Forked> fork_in_halves(const std::function<Result<void>(const Halfway&)>& work);
// When the report is readable. False: it will not get there; it ends.
bool is_halfway(Forked& forked);
Result<void> go_on(const Forked& forked);

// To be called when it has ended; Code::cancelled when it was killed.
Result<void> outcome_of(Forked& forked);

}  // namespace osb::launcher
