#pragma once

// Files that have to outlive a power cut, because what they open does: containers on another host run on.

#include <vector>

#include "base/fd.h"
#include "io/task.h"

namespace osb::docker {

// Returns when the disk has them, directories among them. On a thread of its own: a disk that is busy would
// stop the server's loop.
io::Task<Result<void>> bring_to_disk(std::vector<Fd> files);

}  // namespace osb::docker
