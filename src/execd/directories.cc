#include "execd/directories.h"

#include <sys/stat.h>

#include "execd/paths.h"

namespace osb::execd {

Result<bool> make_directories(const std::string& path, mode_t mode) {
  // Most are there, and with an overlay a look costs a tenth of the attempt.
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return false;
  if (::mkdir(path.c_str(), mode) == 0) return true;
  if (errno == ENOENT && path != "/") {
    TRY(make_directories(std::string(parent_path(path)), mode));
    if (::mkdir(path.c_str(), mode) == 0) return true;
  }
  int error = errno;
  if (error == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return false;
  return fail_errno("create directory " + path, error == EEXIST ? ENOTDIR : error);
}

}  // namespace osb::execd
