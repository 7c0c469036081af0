#pragma once

// look_up_host_path() on a thread of its own. Directories that operators share are on network file systems as
// often as not: one that hangs would stop the server's loop, and everybody with it.

#include <string>
#include <vector>

#include "docker/host_path.h"
#include "io/task.h"

namespace osb::docker {

using HostPathLookUp = Result<FileId> (*)(const std::vector<std::string>& allowed,
                                          const std::string& state_dir, const std::string& path,
                                          Missing missing);

// As look_up_host_path(), or Code::timeout. A thread that hangs stays; Code::unavailable when there are too
// many of these. `look_up` is a parameter for tests.
io::Task<Result<FileId>> look_up_patiently(std::vector<std::string> allowed, std::string state_dir,
                                           std::string path, Missing missing,
                                           io::Duration patience = std::chrono::seconds(10),
                                           HostPathLookUp look_up = look_up_host_path);

}  // namespace osb::docker
