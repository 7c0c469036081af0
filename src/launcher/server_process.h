#pragma once

// The server as a service of the launcher (service.h). Of its own it gets
//   3: the listening socket for clients, held by the launcher, so that connections wait while a new server
//      starts
//   4: its channel to the launcher, fresh for every generation
//   5: if there is something, what root has read for it (cli/original_files.h)

#include "launcher/service.h"
#include "launcher/settings.h"

namespace osb::launcher {

inline constexpr int kServerListenerFd = 3;
inline constexpr int kServerLauncherFd = 4;
inline constexpr int kServerNotesFd = 5;

// The status of a server that found something which no restart cures: a database of another service or of a
// newer version, no right to write it. The launcher then ends with that status, so that whoever started it
// sees it, instead of standing behind an open port that never answers.
inline constexpr int kServerCannotStart = kCannotStart;

ServiceSpec server_service(const Settings& settings);

}  // namespace osb::launcher
