#pragma once

// execd under a kernel of its own in an engine's container: that kernel takes no socket of the host, so execd
// listens by TCP, where the other containers of the network reach it, too. In a container on another host it
// listens on loopback, where the programs in here reach it. Whoever connects has to prove that it has the
// secret (base/knock.h) before anything of execd is behind the connection; then it is one for the API, for
// control, or for a port of a program in here.

#include <string>

#include "base/fd.h"
#include "execd/connections.h"
#include "execd/core.h"

namespace osb::execd {

// From the file that the server has put there. Code::corrupt for anything else.
Result<std::string> read_secret(const std::string& path);
// From whoever started this process, who then ends it; the null device is in its place afterwards.
Result<std::string> take_secret(int input);

// Until the listener breaks.
io::Task<> answer_knocks(Core& core, Fd listener, std::string secret, Receivers receivers);

}  // namespace osb::execd
