#pragma once

// The server as the launcher's child: started unprivileged with three descriptors, started again when it
// dies.
//   3: the listening socket for clients, held by the launcher, so that connections wait while a new server
//   starts 4: the launcher's own socket, fresh for every generation

#include <sys/types.h>

#include "base/fd.h"
#include "launcher/settings.h"

namespace osb::launcher {

inline constexpr int kServerListenerFd = 3;
inline constexpr int kServerLauncherFd = 4;

// The status of a server that found something which no restart cures: a database of another service or of a
// newer version, no right to write it. The service then ends with that status (EX_CONFIG of sysexits.h), so
// that whoever started it sees it, instead of standing behind an open port that never answers.
inline constexpr int kServerCannotStart = 78;

struct ServerProcess {
  pid_t pid = -1;
  Fd channel;  // the launcher's end
};

Result<ServerProcess> start_server(const Settings& settings);

}  // namespace osb::launcher
