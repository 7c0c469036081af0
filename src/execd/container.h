#pragma once

// execd as the first process of a container that an engine has made. Nothing can be inherited through an
// engine, so the listeners come through a socket that the server has put into a read-only directory of the
// container: execd connects to it once, before anything else runs, and takes them. Afterwards execd is
// reached as in a native sandbox, and no name inside leads to it.

#include <string>
#include <vector>

#include "base/error.h"

namespace osb::execd {

// What comes in one message: listeners for the API, for control, and for ports (port_relay.h).
inline constexpr int kContainerListeners = 3;

// Leaves them as descriptors 3, 4 and 5. Code::corrupt when whoever listens there sends something else.
// Then tells what is mounted at `shown`, a line each: an engine is told names, and only from in here can be
// seen what it took for them. "<device> <inode>", or "0 <errno>" for what cannot be looked at: ELOOP or
// ENOTDIR when a link is on the way or it is no directory and no file, EXDEV when nothing is mounted there.
// Waits until the server agrees
// ("g"), and Code::permission_denied when it does not: until then nothing may be done that an image decides.
Result<void> take_listeners(const std::string& path, const std::vector<std::string>& shown = {});

// Directories of volumes, told in the same lines, by an execd that serves for nothing else: the server may
// not look into an engine's volumes. Missing ones are made, and no link is followed.
std::string find_parts(const std::vector<std::string>& paths);

}  // namespace osb::execd
